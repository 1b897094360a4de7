// Tensors in device memory.
//
// A Tensor is a handle: copies share the memory, which is freed in stream order when the last handle is destroyed.
// Contents are dense, row-major. Where an engine carries no values (Capabilities::carries_values)
// tensors have shapes and sizes but no data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

#include "engine/base/half.h"
#include "topologies/base/dtype.h"
#include "topologies/base/error.h"

namespace tandem {

class Device;

// At most eight dimensions; rank 0 is a scalar with one element.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dimensions);
  explicit Shape(std::span<const std::int64_t> dimensions);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dimensions_[static_cast<std::size_t>(axis)]; }
  std::int64_t element_count() const;
  std::span<const std::int64_t> dimensions() const { return {dimensions_.data(), static_cast<std::size_t>(rank_)}; }
  std::string text() const;  // "[64, 10]"
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dimensions_{};
  int rank_ = 0;
};

// A block of one device's memory. Engines derive from it; its destructor frees the block. Made by std::make_shared.
class Buffer : public std::enable_shared_from_this<Buffer> {
 public:
  virtual ~Buffer() = default;
  virtual Device& device() const = 0;
  virtual std::size_t size_bytes() const = 0;
  virtual void* data() const = 0;               // device address; null where no values are carried
  virtual bool is_host_accessible() const = 0;  // whether the calling thread may dereference data()
  // Returns what work under way holds instead of this buffer: the same memory, which stops counting as in use once the
  // program has given up its own handles. The memory in use thus depends on the program alone, not on the times of its
  // work.
  virtual std::shared_ptr<Buffer> memory() { return shared_from_this(); }
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Buffer> buffer, DType dtype, Shape shape, std::size_t offset_bytes = 0);

  explicit operator bool() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t element_count() const { return shape_.element_count(); }
  std::size_t size_bytes() const { return static_cast<std::size_t>(element_count()) * size_of(dtype_); }
  Device& device() const { return buffer_->device(); }
  bool has_values() const { return buffer_ && buffer_->data() != nullptr; }
  void* data() const;  // address of element 0, or null

  // Return views of the same memory: `count` rows from `first` along axis 0, or another shape of as many elements.
  Tensor slice(std::int64_t first, std::int64_t count) const;
  Tensor reshape(Shape shape) const;
  // Returns a rank-1 view of `count` elements from element `first` of the flattened tensor.
  Tensor flat_slice(std::int64_t first, std::int64_t count) const;
  // Returns a view, of this shape, of the elements from element `first` of the flattened tensor.
  Tensor view(std::int64_t first, const Shape& shape) const;

  // Returns the elements of a tensor in host-accessible memory (a worker's CPU); empty where the engine carries no
  // values. The caller must have synchronised with the work that writes them. Throws UsageError when T is not the
  // element type.
  template <typename T>
  std::span<T> values() const;

  // Returns whether both handles name the same memory, element type and shape: TensorFlow's `is`.
  bool is_same(const Tensor& other) const;
  // Returns whether both have some byte of memory in common.
  bool overlaps(const Tensor& other) const;

  // Returns a handle to the same memory that keeps `lease` alive, as do all handles made from it. A live lease tells
  // the owner of the memory that somebody still reads its contents, so that the owner writes elsewhere.
  Tensor leased(std::shared_ptr<const void> lease) const;
  Tensor without_lease() const;
  bool has_lease() const { return has_lease_; }
  // For engines: turns this into a handle for work under way, see Buffer::memory(). One with a lease stays as it is.
  void lend();
  Buffer& buffer() const { return *buffer_; }

  std::string text() const;  // "Tensor(f32 [2, 3] on /job:worker/replica:0/task:0/device:GPU:0)"
  friend std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

 private:
  std::shared_ptr<Buffer> buffer_;  // keeps the lease alive where there is one
  DType dtype_ = DType::f32;
  bool has_lease_ = false;
  Shape shape_;
  std::size_t offset_bytes_ = 0;
};

template <typename T>
inline constexpr DType kDTypeOf = [] {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, Float16>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return DType::u8;
}();

template <typename T>
std::span<T> Tensor::values() const {
  TANDEM_REQUIRE(dtype_ == kDTypeOf<std::remove_const_t<T>>, "tensor of another element type");
  if (!has_values()) return {};
  TANDEM_REQUIRE(buffer_->is_host_accessible(), "the host cannot read this device's memory");
  return {static_cast<T*>(data()), static_cast<std::size_t>(element_count())};
}

}  // namespace tandem
