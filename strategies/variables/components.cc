#include "strategies/variables/components.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/values/host_values.h"

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

}  // namespace

Op as_update(Op op) {
  op.category = Category::update;
  return op;
}

Tensor operand_beside(const Tensor& component, const Value& value) {
  Device& device = component.device();
  if (value.is(ValueKind::number)) {
    Tensor filled = device.allocate(component.dtype(), component.shape());
    device.compute_stream().launch(as_update(op::fill(filled, value.number())));
    return filled;
  }
  const Value& bare = value.is_distributed() ? value.parts().front() : value;
  Tensor from = bare.is(ValueKind::variable) ? bare.variable()->value() : bare.tensor();
  if (from.element_count() != component.element_count()) {
    throw ValueError(
        fmt::format("a value of shape {} for a variable of shape {}", from.shape().text(), component.shape().text()));
  }
  from = brought_to(device, from);
  if (from.dtype() == component.dtype()) return from;
  Tensor cast = device.allocate(component.dtype(), from.shape());
  device.compute_stream().launch(as_update(op::cast(cast, from)));
  return cast;
}

void apply_change(Change change, const Tensor& component, const Value& value) {
  Stream& stream = component.device().compute_stream();
  if (change == Change::assign && value.is(ValueKind::number)) {
    stream.launch(as_update(op::fill(component, value.number())));
    return;
  }
  const Tensor from = operand_beside(component, value);
  if (change == Change::assign) {
    stream.copy(component, from, Category::update);
  } else {
    stream.launch(as_update(op::scale_add(component, from, change == Change::add ? 1 : -1, 1)));
  }
}

void apply_scatter(kernel::Scatter operation, const Tensor& component, const IndexedSlices& slices) {
  const Shape& rows = slices.values.shape();
  bool fits = rows.rank() >= 1 && rows.rank() == component.shape().rank() &&
              rows[0] == slices.indices.element_count() && slices.values.dtype() == component.dtype();
  for (int axis = 1; fits && axis < rows.rank(); ++axis) fits = rows[axis] == component.shape()[axis];
  if (!fits) {
    throw ValueError(fmt::format("{} slices of shape {} ({}) for a variable of shape {} ({})",
                                 slices.indices.element_count(), rows.text(), name_of(slices.values.dtype()),
                                 component.shape().text(), name_of(component.dtype())));
  }
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
