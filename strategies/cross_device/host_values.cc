#include "strategies/cross_device/host_values.h"

#include <fmt/format.h>

#include <limits>

#include "engine/base/element_types.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"

namespace tandem {
namespace {

template <typename Function>
void with_number_type(DType dtype, Function&& function) {
  with_element_type(dtype, function,
                    [dtype] { throw TypeError(fmt::format("the host has no numbers of type {}", name_of(dtype))); });
}

}  // namespace

Tensor constant(Device& device, std::vector<double> values, std::optional<Shape> shape, DType dtype) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Shape of_values = shape.value_or(Shape{count});
  if (count != of_values.element_count()) {
    throw ValueError(fmt::format("{} numbers for a constant of shape {}", count, of_values.text()));
  }
  Worker* const worker = Task::current().worker();
  if (!worker) throw RuntimeError("a constant is made outside of a worker's program");
  return copy_on(device, host_tensor(worker->cpu(), dtype, of_values, [values = std::move(values)](std::int64_t i) {
                   return values[static_cast<std::size_t>(i)];
                 }));
}

Tensor host_tensor(Device& host, DType dtype, const Shape& shape, std::function<double(std::int64_t)> value) {
  Tensor tensor = host.allocate(dtype, shape);
  with_number_type(dtype, [&]<typename T>() {
    host.compute_stream().launch(op::host_function("initial value", {}, [tensor, value = std::move(value)] {
      const std::span<T> elements = tensor.values<T>();
      for (std::size_t i = 0; i < elements.size(); ++i) {
        elements[i] = static_cast<T>(value(static_cast<std::int64_t>(i)));
      }
    }));
  });
  return tensor;
}

Tensor copied_to_host(Worker& worker, const Tensor& tensor) {
  Device& host = worker.cpu();
  if (&tensor.device() == &host) return tensor;
  Tensor copy = host.allocate(tensor.dtype(), tensor.shape());
  host.compute_stream().wait(tensor.device().compute_stream().record());
  host.compute_stream().copy(copy, tensor, Category::other);
  return copy;
}

std::vector<double> host_values(Worker& worker, const Tensor& tensor) {
  const Tensor host = copied_to_host(worker, tensor);
  host.device().compute_stream().synchronize();
  std::vector<double> numbers;
  with_number_type(tensor.dtype(), [&]<typename T>() {
    for (const T element : host.values<T>()) numbers.push_back(static_cast<double>(element));
  });
  return numbers;
}

double host_number(Worker& worker, const Tensor& tensor) {
  const std::vector<double> numbers = host_values(worker, tensor);
  return numbers.empty() ? std::numeric_limits<double>::quiet_NaN() : numbers.front();
}

}  // namespace tandem
