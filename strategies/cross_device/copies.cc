#include "strategies/cross_device/copies.h"

#include "engine/device.h"
#include "strategies/values/shapes.h"

namespace tandem {

Op as_communication(Op op) {
  op.category = Category::communication;
  return op;
}

Tensor copy_on(Device& device, const Tensor& tensor) {
  if (&tensor.device() == &device) return tensor;
  Tensor copy = device.allocate(tensor.dtype(), tensor.shape());
  device.compute_stream().wait(tensor.device().compute_stream().record());
  device.compute_stream().copy(copy, tensor);
  return copy;
}

IndexedSlices copy_on(Device& device, const IndexedSlices& slices) {
  return {copy_on(device, slices.values), copy_on(device, slices.indices), slices.dense_shape};
}

Value copies_on(const std::vector<Device*>& devices, const Value& value) {
  Value::Parts copies;
  for (Device* device : devices) {
    if (value.is(ValueKind::tensor)) {
      copies.emplace_back(copy_on(*device, value.tensor()));
    } else if (value.is(ValueKind::sparse)) {
      copies.emplace_back(copy_on(*device, value.slices()));
    } else {
      copies.push_back(value);
    }
  }
  return copies.size() == 1 ? copies.front() : Value::mirrored(std::move(copies));
}

Value number_on(const Destinations& destinations, Worker& worker, const Value& number) {
  return destinations.is_empty() ? number : copies_on(destinations.resolve(worker), number);
}

Value copy_of_tensors(const Value& value) {
  if (!value.is(ValueKind::per_replica)) return value;
  Value::Parts copies;
  for (const Value& part : value.parts()) {
    if (!part.is(ValueKind::tensor)) return value;
    const Tensor& tensor = part.tensor();
    const Tensor copy = tensor.device().allocate(tensor.dtype(), tensor.shape());
    tensor.device().compute_stream().copy(copy, tensor);
    copies.emplace_back(copy);
  }
  return Value::per_replica(std::move(copies));
}

IndexedSlices concatenated(Device& device, const std::vector<IndexedSlices>& slices) {
  std::int64_t rows = 0;
  for (const IndexedSlices& part : slices) rows += part.indices.element_count();
  const IndexedSlices& first = slices.front();
  IndexedSlices whole{device.allocate(first.values.dtype(), with_dimension(first.values.shape(), 0, rows)),
                      device.allocate(DType::i64, {rows}), first.dense_shape};
  Stream& stream = device.compute_stream();
  std::int64_t row = 0;
  for (const IndexedSlices& part : slices) {
    const std::int64_t count = part.indices.element_count();
    if (&part.values.device() != &device) stream.wait(part.values.device().compute_stream().record());
    if (count > 0) {
      stream.copy(whole.values.slice(row, count), part.values);
      stream.copy(whole.indices.slice(row, count), part.indices);
    }
    row += count;
  }
  return whole;
}

Tensor dense(const IndexedSlices& slices) {
  Device& device = slices.values.device();
  Tensor whole = device.allocate(slices.values.dtype(), slices.dense_shape);
  device.compute_stream().launch(op::fill(whole, 0));
  device.compute_stream().launch(op::scatter_rows(kernel::Scatter::add, whole, slices.values, slices.indices));
  return whole;
}

}  // namespace tandem
