// Values on the host: the components of a dataset's elements.
//
// A HostTensor is immutable and cheap to copy. Rows of a large array, and batches of such rows, are views that name the
// rows; values are gathered only when somebody reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/tensor.h"

namespace tandem {

using HostValues = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int32_t>,
                                std::vector<std::int64_t>, std::vector<std::string>>;

std::optional<DType> dtype_of(const HostValues& values);  // nothing for texts, which devices cannot hold
std::int64_t count_of(const HostValues& values);

class HostTensor {
 public:
  HostTensor() : HostTensor({0}, std::vector<float>{}) {}
  HostTensor(Shape shape, HostValues values);  // ValueError when there are not as many values as elements
  template <typename T>
  static HostTensor scalar(T value) {
    return {Shape{}, HostValues(std::vector<T>{std::move(value)})};
  }
  static HostTensor scalar(const char* text) { return scalar(std::string(text)); }
  template <typename T>
  static HostTensor vector(std::vector<T> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return {Shape{count}, HostValues(std::move(values))};
  }
  static HostTensor zeros(std::optional<DType> dtype, Shape shape);  // empty texts where there is no dtype

  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t element_count() const { return shape_.element_count(); }
  std::optional<DType> dtype() const { return dtype_of(*base_); }
  bool is_text() const { return !dtype(); }

  // Rows are along axis 0; InvalidArgumentError for scalars.
  std::int64_t rows() const;
  HostTensor slice(std::int64_t first, std::int64_t count) const;
  HostTensor row(std::int64_t index) const;  // without axis 0

  // Combine tensors along a new axis in front, or along axis 0. InvalidArgumentError for different types or shapes.
  static HostTensor stack(std::span<const HostTensor> tensors);
  static HostTensor concatenate(std::span<const HostTensor> tensors);

  // TypeError when T is not the element type.
  template <typename T>
  void copy_to(std::span<T> to) const;
  template <typename T>
  std::vector<T> values() const {
    std::vector<T> all(static_cast<std::size_t>(element_count()));
    copy_to(std::span<T>(all));
    return all;
  }
  // The value of a tensor of one element, or element `index`, as a number of any type. TypeError for texts.
  double number(std::int64_t index = 0) const;
  std::string text(std::int64_t index = 0) const;  // TypeError for numbers

  bool operator==(const HostTensor& other) const;  // compares type, shape and values

 private:
  template <typename T>
  const std::vector<T>& base() const;
  std::int64_t position(std::int64_t index) const;  // where an element is in the base
  static HostTensor join(std::span<const HostTensor> tensors, Shape shape);

  Shape shape_;
  std::shared_ptr<const HostValues> base_;
  // The elements lie in the base in runs of `run_` elements: one run at each of `starts_` or, if that is empty, one run
  // at `start_`.
  std::int64_t run_ = 0;
  std::int64_t start_ = 0;
  std::vector<std::int64_t> starts_;
};

[[noreturn]] void throw_wrong_element_type(const HostValues& values);

template <typename T>
const std::vector<T>& HostTensor::base() const {
  const auto* values = std::get_if<std::vector<T>>(base_.get());
  if (!values) throw_wrong_element_type(*base_);
  return *values;
}

template <typename T>
void HostTensor::copy_to(std::span<T> to) const {
  const std::vector<T>& from = base<T>();
  TANDEM_REQUIRE(static_cast<std::int64_t>(to.size()) == element_count(), "room for another number of elements");
  if (to.empty()) return;
  const auto copy_run = [&](std::int64_t start, std::size_t run_index) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(start);
    std::copy(begin, begin + static_cast<std::ptrdiff_t>(run_),
              to.begin() + static_cast<std::ptrdiff_t>(run_index * static_cast<std::size_t>(run_)));
  };
  if (starts_.empty()) copy_run(start_, 0);
  for (std::size_t i = 0; i < starts_.size(); ++i) copy_run(starts_[i], i);
}

// A table on the host: rows of `row_shape`, all of one element type, row-major.
struct HostArray {
  Shape row_shape{};
  HostValues values{};

  std::optional<DType> dtype() const { return dtype_of(values); }
  std::int64_t row_elements() const { return row_shape.element_count(); }
  std::int64_t rows() const { return row_elements() == 0 ? 0 : count_of(values) / row_elements(); }
};
HostTensor as_tensor(HostArray array);  // rows first

}  // namespace tandem
