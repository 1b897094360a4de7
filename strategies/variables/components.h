// The tensors that a variable stores, one per device, and how they are changed there.
#pragma once

#include <vector>

#include "strategies/variables/variable.h"

namespace tandem {

// Refuses a value that a component cannot be combined with: ValueError for another element type or number of elements,
// TypeError for a fraction beside integers.
void check_operand(const Tensor& component, const Value& value);
// ValueError for slices that are no rows of the component, or of another element type.
void check_slices(const Tensor& component, const IndexedSlices& slices);

// Returns `value` as a tensor on the component's device. A number fills the component's shape; a variable gives its
// current component. Throws what check_operand() throws.
Tensor operand_beside(const Tensor& component, const Value& value);
// component = value, or += or -=, on the component's compute stream.
void apply_change(Change change, const Tensor& component, const Value& value);
void apply_scatter(kernel::Scatter operation, const Tensor& component, const IndexedSlices& slices);

// Makes one component with the initial value on each device. The value is computed once, so that all are equal.
std::vector<Tensor> make_components(const VariableSpec& spec, const std::vector<Device*>& devices, Device& host);

// Returns the op, to be recorded as an update.
Op as_update(Op op);

}  // namespace tandem
