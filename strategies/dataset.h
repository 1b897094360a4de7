// Input data on the host: rows of one or more arrays, dealt out in batches.
//
// Deterministic: equal calls give equal batches. Threads: a Dataset is immutable; an iterator has one user.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "engine/tensor.h"

namespace tandem {

// Rows of `row_shape`, all of one element type, row-major.
struct HostArray {
  Shape row_shape;
  std::variant<std::vector<float>, std::vector<std::int32_t>> values;

  DType dtype() const { return values.index() == 0 ? DType::f32 : DType::i32; }
  std::int64_t row_elements() const { return row_shape.element_count(); }
  std::int64_t rows() const;
};

class Dataset {
 public:
  // Element i is row i of every array. ValueError when the arrays have different numbers of rows.
  static Dataset from_tensor_slices(std::vector<HostArray> arrays);

  // Each returns a changed copy; they apply in this order, whatever the order of the calls.
  Dataset shuffle(std::uint64_t seed) const;  // all rows, anew in every repetition
  Dataset repeat(std::int64_t count = kForever) const;
  Dataset batch(std::int64_t size, bool drop_remainder = false) const;  // ValueError below 1

  static constexpr std::int64_t kForever = -1;
  const std::vector<HostArray>& arrays() const { return *arrays_; }
  std::int64_t batch_size() const { return batch_size_; }  // 0: not batched
  std::int64_t rows() const { return arrays_->front().rows(); }

  // The rows of batch number `index`, or nothing after the last one.
  std::optional<std::vector<std::int64_t>> batch_rows(std::int64_t index) const;

 private:
  const std::vector<std::int64_t>& order_of(std::int64_t repetition) const;

  std::shared_ptr<const std::vector<HostArray>> arrays_;
  std::optional<std::uint64_t> seed_;
  std::int64_t repetitions_ = 1;
  std::int64_t batch_size_ = 0;
  bool drop_remainder_ = false;
  mutable std::int64_t cached_repetition_ = -1;
  mutable std::vector<std::int64_t> cached_order_;
};

}  // namespace tandem
