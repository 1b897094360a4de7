// Tensors over ordinary memory, without an engine.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/device.h"

namespace tandem {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t size_bytes) : memory_(size_bytes + 1) {}
  Device& device() const override { check_failed("device", __FILE__, __LINE__, "a tensor of no device"); }
  std::size_t size_bytes() const override { return memory_.size() - 1; }
  void* data() const override { return const_cast<std::byte*>(memory_.data()); }
  bool is_host_accessible() const override { return true; }

 private:
  std::vector<std::byte> memory_;
};

inline Tensor host_tensor(DType dtype, Shape shape) {
  const auto bytes = static_cast<std::size_t>(shape.element_count()) * size_of(dtype);
  return {std::make_shared<HostBuffer>(bytes), dtype, shape};
}

// Takes the first elements of `values`; they must be as many as the shape has.
template <typename T>
Tensor host_tensor(Shape shape, const std::vector<T>& values) {
  Tensor tensor = host_tensor(kDTypeOf<T>, shape);
  TANDEM_CHECK(static_cast<std::int64_t>(values.size()) == shape.element_count(), "values of another count");
  std::copy(values.begin(), values.end(), tensor.values<T>().begin());
  return tensor;
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  const std::span<T> values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace tandem
