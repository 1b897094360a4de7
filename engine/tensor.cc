#include "engine/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "engine/device.h"

namespace tandem {
namespace {

// Element counts must be below this limit, so that sizes in bytes never overflow.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 59;

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> dimensions)
    : Shape(std::span<const std::int64_t>(dimensions.begin(), dimensions.size())) {}

Shape::Shape(std::span<const std::int64_t> dimensions) : rank_(static_cast<int>(dimensions.size())) {
  TANDEM_REQUIRE(dimensions.size() <= kMaxRank, "a shape of more than eight dimensions");
  std::copy(dimensions.begin(), dimensions.end(), dimensions_.begin());
  std::int64_t count = 1;
  for (const std::int64_t dimension : dimensions) {
    TANDEM_REQUIRE(dimension >= 0, "a negative dimension in the shape " + text());
    if (__builtin_mul_overflow(count, std::max<std::int64_t>(dimension, 1), &count) || count > kMaxElements) {
      throw ImpossibleError(fmt::format("the shape {} has more than 2^59 elements", text()), "workload");
    }
  }
}

std::int64_t Shape::element_count() const {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank_; ++axis) count *= (*this)[axis];
  return count;
}

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(dimensions(), ", "));
}

Tensor::Tensor(std::shared_ptr<Buffer> buffer, DType dtype, Shape shape, std::size_t offset_bytes)
    : buffer_(std::move(buffer)), dtype_(dtype), shape_(shape), offset_bytes_(offset_bytes) {
  TANDEM_REQUIRE(buffer_ != nullptr, "a tensor without memory");
  TANDEM_REQUIRE(offset_bytes_ + size_bytes() <= buffer_->size_bytes(), "a tensor larger than its memory");
}

void* Tensor::data() const {
  return has_values() ? static_cast<std::byte*>(buffer_->data()) + offset_bytes_ : nullptr;
}

Tensor Tensor::slice(std::int64_t first, std::int64_t count) const {
  TANDEM_REQUIRE(shape_.rank() >= 1, "a slice of a scalar");
  TANDEM_REQUIRE(first >= 0 && count >= 0 && first <= shape_[0] - count, "a slice beyond the shape " + shape_.text());
  std::array<std::int64_t, Shape::kMaxRank> dimensions{};
  std::copy(shape_.dimensions().begin(), shape_.dimensions().end(), dimensions.begin());
  const std::int64_t rows = dimensions[0];
  const std::int64_t row_elements = rows == 0 ? 0 : shape_.element_count() / rows;
  dimensions[0] = count;
  const Shape shape(std::span<const std::int64_t>(dimensions.data(), static_cast<std::size_t>(shape_.rank())));
  Tensor part = *this;
  part.shape_ = shape;
  part.offset_bytes_ += static_cast<std::size_t>(first * row_elements) * size_of(dtype_);
  return part;
}

Tensor Tensor::reshape(Shape shape) const {
  TANDEM_REQUIRE(shape.element_count() == element_count(),
                 "a reshape of " + shape_.text() + " to " + shape.text() + " changes the number of elements");
  Tensor reshaped = *this;
  reshaped.shape_ = shape;
  return reshaped;
}

Tensor Tensor::flat_slice(std::int64_t first, std::int64_t count) const {
  TANDEM_REQUIRE(count >= 0, "a slice beyond the shape " + Shape{element_count()}.text());
  return view(first, Shape{count});
}

Tensor Tensor::view(std::int64_t first, const Shape& shape) const {
  const std::int64_t elements = element_count();
  TANDEM_REQUIRE(first >= 0 && first <= elements - shape.element_count(),
                 "a slice beyond the shape " + Shape{elements}.text());
  Tensor part = *this;
  part.shape_ = shape;
  part.offset_bytes_ += static_cast<std::size_t>(first) * size_of(dtype_);
  return part;
}

bool Tensor::is_same(const Tensor& other) const {
  return buffer_ == other.buffer_ && dtype_ == other.dtype_ && shape_ == other.shape_ &&
         offset_bytes_ == other.offset_bytes_;
}

bool Tensor::overlaps(const Tensor& other) const {
  return buffer_.get() == other.buffer_.get() && offset_bytes_ < other.offset_bytes_ + other.size_bytes() &&
         other.offset_bytes_ < offset_bytes_ + size_bytes();
}

Tensor Tensor::leased(std::shared_ptr<const void> lease) const {
  struct Holder {
    std::shared_ptr<Buffer> memory;
    std::shared_ptr<const void> lease;
  };
  Tensor tensor = *this;
  const auto holder = std::make_shared<const Holder>(Holder{buffer_, std::move(lease)});
  tensor.buffer_ = std::shared_ptr<Buffer>(holder, buffer_.get());
  tensor.has_lease_ = true;
  return tensor;
}

Tensor Tensor::without_lease() const {
  Tensor tensor = *this;
  if (has_lease_) tensor.buffer_ = buffer_->shared_from_this();
  tensor.has_lease_ = false;
  return tensor;
}

void Tensor::lend() {
  if (buffer_ && !has_lease_) buffer_ = buffer_->memory();
}

std::string Tensor::text() const {
  if (!buffer_) return "Tensor()";
  return fmt::format("Tensor({} {} on {})", name_of(dtype_), shape_.text(), device().id().text());
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.text();
}

}  // namespace tandem
