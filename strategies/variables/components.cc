#include "strategies/variables/components.h"

#include <fmt/format.h>

#include <cmath>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"

namespace tandem {
namespace {

// `tensor`, or its copy on `device`.
Tensor brought_to(Device& device, const Tensor& tensor) {
  if (&tensor.device() == &device) return tensor;
  Tensor fetched = device.allocate(tensor.dtype(), tensor.shape());
  device.compute_stream().wait(tensor.device().compute_stream().record());
  device.compute_stream().copy(fetched, tensor, Category::update);
  return fetched;
}

// Fills with a number, also with an integer beyond 2^53, which a double does not hold: first with the part of it that a
// double holds, then the rest is added.
void fill_exactly(const Tensor& tensor, const Value& number) {
  Stream& stream = tensor.device().compute_stream();
  constexpr std::int64_t kExact = std::int64_t{1} << 53, kRest = (1 << 11) - 1;
  const std::int64_t integer = number.is_integer() ? number.integer_number() : 0;
  if (tensor.dtype() != DType::i64 || (integer <= kExact && integer >= -kExact)) {
    stream.launch(as_update(op::fill(tensor, number.number())));
    return;
  }
  const Tensor rest = tensor.device().allocate(DType::i64, tensor.shape());
  stream.launch(as_update(op::fill(tensor, static_cast<double>(integer & ~kRest))));
  stream.launch(as_update(op::fill(rest, static_cast<double>(integer & kRest))));
  stream.launch(as_update(op::scale_add(tensor, rest, 1, 1)));
}

}  // namespace

Op as_update(Op op) {
  op.category = Category::update;
  return op;
}

void check_operand(const Tensor& component, const Value& value) {
  const DType dtype = component.dtype();
  if (value.is(ValueKind::number)) {
    const bool is_whole = dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8;
    if (is_whole && std::isfinite(value.number()) && value.number() != std::trunc(value.number())) {
      throw TypeError(fmt::format("the value {} for a variable of type {}", value.number(), name_of(dtype)));
    }
    return;
  }
  const Tensor& tensor = value.tensor();
  if (tensor.dtype() != dtype) {
    throw ValueError(fmt::format("a value of type {} for a variable of type {}; cast it first", name_of(tensor.dtype()),
                                 name_of(dtype)));
  }
  if (tensor.element_count() != component.element_count()) {
    throw ValueError(
        fmt::format("a value of shape {} for a variable of shape {}", tensor.shape().text(), component.shape().text()));
  }
}

Tensor operand_beside(const Tensor& component, const Value& value) {
  Device& device = component.device();
  const Value& bare = value.is_distributed() ? value.parts().front() : value;
  const Value now = bare.is(ValueKind::variable) ? Value(bare.variable()->value()) : bare;
  check_operand(component, now);
  if (!now.is(ValueKind::number)) return brought_to(device, now.tensor());
  Tensor filled = device.allocate(component.dtype(), component.shape());
  fill_exactly(filled, now);
  return filled;
}

void apply_change(Change change, const Tensor& component, const Value& value) {
  Stream& stream = component.device().compute_stream();
  if (change == Change::assign && value.is(ValueKind::number)) {
    check_operand(component, value);
    fill_exactly(component, value);
    return;
  }
  const Tensor from = operand_beside(component, value);
  if (change == Change::assign) {
    stream.copy(component, from, Category::update);
  } else {
    stream.launch(as_update(op::scale_add(component, from, change == Change::add ? 1 : -1, 1)));
  }
}

void check_slices(const Tensor& component, const IndexedSlices& slices) {
  const Shape& rows = slices.values.shape();
  bool fits = rows.rank() >= 1 && rows.rank() == component.shape().rank() &&
              rows[0] == slices.indices.element_count() && slices.values.dtype() == component.dtype();
  for (int axis = 1; fits && axis < rows.rank(); ++axis) fits = rows[axis] == component.shape()[axis];
  if (!fits) {
    throw ValueError(fmt::format("{} slices of shape {} ({}) for a variable of shape {} ({})",
                                 slices.indices.element_count(), rows.text(), name_of(slices.values.dtype()),
                                 component.shape().text(), name_of(component.dtype())));
  }
}

void apply_scatter(kernel::Scatter operation, const Tensor& component, const IndexedSlices& slices) {
  check_slices(component, slices);
  Device& device = component.device();
  device.compute_stream().launch(as_update(
      op::scatter_rows(operation, component, brought_to(device, slices.values), brought_to(device, slices.indices))));
}

std::vector<Tensor> make_components(const VariableSpec& spec, const std::vector<Device*>& devices, Device& host) {
  std::vector<Tensor> components;
  for (Device* device : devices) {
    components.push_back(device->allocate(spec.dtype, spec.shape));
    if (!spec.initial_value) device->compute_stream().launch(op::fill(components.back(), 0));
  }
  if (!spec.initial_value) return components;
  const Tensor initial = host_tensor(host, spec.dtype, spec.shape, spec.initial_value);
  for (const Tensor& component : components) {
    Stream& stream = component.device().compute_stream();
    stream.wait(host.compute_stream().record());
    stream.copy(component, initial, Category::other);
  }
  return components;
}

}  // namespace tandem
