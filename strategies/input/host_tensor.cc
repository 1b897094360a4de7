#include "strategies/input/host_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

template <typename T>
concept IsText = std::is_same_v<T, std::string>;

std::string_view type_name(const HostValues& values) {
  const std::optional<DType> dtype = dtype_of(values);
  return dtype ? name_of(*dtype) : "text";
}

Shape with_rows(std::int64_t rows, std::span<const std::int64_t> row) {
  std::vector<std::int64_t> dimensions = {rows};
  dimensions.insert(dimensions.end(), row.begin(), row.end());
  return Shape(std::span<const std::int64_t>(dimensions));
}

HostValues zero_values(std::optional<DType> dtype, std::size_t count) {
  if (!dtype) return std::vector<std::string>(count);
  switch (*dtype) {
    case DType::f32:
      return std::vector<float>(count);
    case DType::f64:
      return std::vector<double>(count);
    case DType::i32:
      return std::vector<std::int32_t>(count);
    case DType::i64:
      return std::vector<std::int64_t>(count);
    default:
      throw ValueError(fmt::format("datasets have no elements of type {}", name_of(*dtype)));
  }
}

}  // namespace

std::optional<DType> dtype_of(const HostValues& values) {
  return std::visit(
      []<typename T>(const std::vector<T>&) -> std::optional<DType> {
        if constexpr (IsText<T>) {
          return std::nullopt;
        } else {
          return kDTypeOf<T>;
        }
      },
      values);
}

std::int64_t count_of(const HostValues& values) {
  return std::visit([](const auto& v) { return static_cast<std::int64_t>(v.size()); }, values);
}

void throw_wrong_element_type(const HostValues& values) {
  throw TypeError(fmt::format("a host tensor of {} was read as another element type", type_name(values)));
}

HostTensor::HostTensor(Shape shape, HostValues values)
    : shape_(shape), base_(std::make_shared<const HostValues>(std::move(values))), run_(shape.element_count()) {
  if (count_of(*base_) != run_) {
    throw ValueError(fmt::format("{} values for a tensor of shape {}", count_of(*base_), shape_.text()));
  }
}

HostTensor HostTensor::zeros(std::optional<DType> dtype, Shape shape) {
  return {shape, zero_values(dtype, static_cast<std::size_t>(shape.element_count()))};
}

std::int64_t HostTensor::rows() const {
  if (rank() == 0) throw InvalidArgumentError("a scalar has no rows; is the dataset not batched?");
  return shape_[0];
}

HostTensor HostTensor::slice(std::int64_t first, std::int64_t count) const {
  TANDEM_REQUIRE(first >= 0 && count >= 0 && first + count <= rows(), "rows outside of a host tensor");
  const Shape shape = with_rows(count, shape_.dimensions().subspan(1));
  const std::int64_t row_elements = rows() == 0 ? 0 : element_count() / rows();
  if (shape.element_count() == 0) return zeros(dtype(), shape);
  HostTensor part = *this;
  part.shape_ = shape;
  if (starts_.empty()) {
    part.start_ += first * row_elements;
    part.run_ = count * row_elements;
    return part;
  }
  if (row_elements % run_ != 0) {  // a row is a part of a run: gather first
    return std::visit(
        [&]<typename T>(const std::vector<T>&) { return HostTensor(shape_, values<T>()).slice(first, count); }, *base_);
  }
  const std::int64_t runs = row_elements / run_;
  const auto begin = starts_.begin() + static_cast<std::ptrdiff_t>(first * runs);
  part.starts_.assign(begin, begin + static_cast<std::ptrdiff_t>(count * runs));
  return part;
}

HostTensor HostTensor::row(std::int64_t index) const {
  const Shape shape(shape_.dimensions().subspan(rank() > 0 ? 1 : 0));
  const bool is_in_one_run = starts_.empty() && shape.element_count() > 0;
  HostTensor part = is_in_one_run ? *this : slice(index, 1);
  part.shape_ = shape;
  if (!is_in_one_run) return part;
  TANDEM_REQUIRE(index >= 0 && index < rows(), "a row outside of a host tensor");
  part.run_ = shape.element_count();
  part.start_ += index * part.run_;
  return part;
}

HostTensor HostTensor::join(std::span<const HostTensor> tensors, Shape shape) {
  const HostTensor& first = tensors.front();
  if (shape.element_count() == 0) return zeros(first.dtype(), shape);
  const bool is_one_base = std::all_of(tensors.begin(), tensors.end(), [&](const HostTensor& tensor) {
    return tensor.base_ == first.base_ && tensor.run_ == first.run_;
  });
  if (is_one_base) {
    HostTensor joined = first;
    joined.shape_ = shape;
    joined.starts_.clear();
    for (const HostTensor& tensor : tensors) {
      if (tensor.starts_.empty()) joined.starts_.push_back(tensor.start_);
      joined.starts_.insert(joined.starts_.end(), tensor.starts_.begin(), tensor.starts_.end());
    }
    return joined;
  }
  return std::visit(
      [&]<typename T>(const std::vector<T>&) {
        std::vector<T> all(static_cast<std::size_t>(shape.element_count()));
        std::span<T> to = all;
        for (const HostTensor& tensor : tensors) {
          const auto count = static_cast<std::size_t>(tensor.element_count());
          tensor.copy_to(to.first(count));
          to = to.subspan(count);
        }
        return HostTensor(shape, std::move(all));
      },
      *first.base_);
}

HostTensor HostTensor::stack(std::span<const HostTensor> tensors) {
  const HostTensor& first = tensors.front();
  for (const HostTensor& tensor : tensors) {
    if (tensor.shape_ != first.shape_ || tensor.base_->index() != first.base_->index()) {
      throw InvalidArgumentError(fmt::format("cannot batch elements of {} {} and {} {}", type_name(*first.base_),
                                             first.shape_.text(), type_name(*tensor.base_), tensor.shape_.text()));
    }
  }
  return join(tensors, with_rows(static_cast<std::int64_t>(tensors.size()), first.shape_.dimensions()));
}

HostTensor HostTensor::concatenate(std::span<const HostTensor> tensors) {
  const HostTensor& first = tensors.front();
  std::int64_t rows = 0;
  for (const HostTensor& tensor : tensors) {
    rows += tensor.rows();
    const bool fits = tensor.rank() == first.rank() && tensor.base_->index() == first.base_->index() &&
                      std::ranges::equal(tensor.shape_.dimensions().subspan(1), first.shape_.dimensions().subspan(1));
    if (!fits) {
      throw InvalidArgumentError(
          fmt::format("cannot join rows of {} and {}", first.shape_.text(), tensor.shape_.text()));
    }
  }
  return join(tensors, with_rows(rows, first.shape_.dimensions().subspan(1)));
}

std::int64_t HostTensor::position(std::int64_t index) const {
  TANDEM_REQUIRE(index >= 0 && index < element_count(), "an element outside of a host tensor");
  if (starts_.empty()) return start_ + index;
  return starts_[static_cast<std::size_t>(index / run_)] + index % run_;
}

double HostTensor::number(std::int64_t index) const {
  return std::visit(
      [&]<typename T>(const std::vector<T>& from) -> double {
        if constexpr (IsText<T>) {
          throw_wrong_element_type(*base_);
        } else {
          return static_cast<double>(from[static_cast<std::size_t>(position(index))]);
        }
      },
      *base_);
}

std::string HostTensor::text(std::int64_t index) const {
  return base<std::string>()[static_cast<std::size_t>(position(index))];
}

bool HostTensor::operator==(const HostTensor& other) const {
  if (shape_ != other.shape_ || base_->index() != other.base_->index()) return false;
  return std::visit([&]<typename T>(const std::vector<T>&) { return values<T>() == other.values<T>(); }, *base_);
}

HostTensor as_tensor(HostArray array) {
  const Shape shape = with_rows(array.rows(), array.row_shape.dimensions());
  return {shape, std::move(array.values)};
}

}  // namespace tandem
