// What a variable stores, one tensor a device, and how it is changed there.
#pragma once

#include <vector>

#include "strategies/variables/variable.h"

namespace tandem {

// `value` as a tensor to combine with `component`: on its device, of its type; a number fills its shape, a variable
// stands for its current component. ValueError for another number of elements.
Tensor operand_beside(const Tensor& component, const Value& value);
// component = value, or += or -=, on the component's compute stream.
void apply_change(Change change, const Tensor& component, const Value& value);
void apply_scatter(kernel::Scatter operation, const Tensor& component, const IndexedSlices& slices);

// Components with the initial value, one on each device. The value is made once, so that they are equal.
std::vector<Tensor> make_components(const VariableSpec& spec, const std::vector<Device*>& devices, Device& host);

// The op, booked as an update.
Op as_update(Op op);

}  // namespace tandem
