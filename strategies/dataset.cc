#include "strategies/dataset.h"

#include <fmt/format.h>

#include <numeric>
#include <random>

#include "strategies/errors.h"

namespace tandem {

std::int64_t HostArray::rows() const {
  const std::int64_t elements = std::visit([](const auto& v) { return static_cast<std::int64_t>(v.size()); }, values);
  return elements / row_elements();
}

Dataset Dataset::from_tensor_slices(std::vector<HostArray> arrays) {
  if (arrays.empty()) throw ValueError("a dataset needs at least one array");
  for (const HostArray& array : arrays) {
    if (array.rows() != arrays.front().rows()) {
      throw ValueError(fmt::format("the arrays of a dataset have {} and {} rows", arrays.front().rows(), array.rows()));
    }
  }
  Dataset dataset;
  dataset.arrays_ = std::make_shared<const std::vector<HostArray>>(std::move(arrays));
  return dataset;
}

Dataset Dataset::shuffle(std::uint64_t seed) const {
  Dataset copy = *this;
  copy.seed_ = seed;
  return copy;
}

Dataset Dataset::repeat(std::int64_t count) const {
  Dataset copy = *this;
  copy.repetitions_ = count;
  return copy;
}

Dataset Dataset::batch(std::int64_t size, bool drop_remainder) const {
  if (size < 1) throw ValueError(fmt::format("a batch of {} rows, must be at least 1", size));
  Dataset copy = *this;
  copy.batch_size_ = size;
  copy.drop_remainder_ = drop_remainder;
  return copy;
}

// Fisher and Yates' shuffle by hand: std::shuffle's result differs between libraries.
const std::vector<std::int64_t>& Dataset::order_of(std::int64_t repetition) const {
  if (cached_repetition_ == repetition) return cached_order_;
  cached_order_.resize(static_cast<std::size_t>(rows()));
  std::iota(cached_order_.begin(), cached_order_.end(), std::int64_t{0});
  if (seed_) {
    std::mt19937_64 random(*seed_ + static_cast<std::uint64_t>(repetition));
    for (std::size_t i = cached_order_.size(); i > 1; --i) std::swap(cached_order_[i - 1], cached_order_[random() % i]);
  }
  cached_repetition_ = repetition;
  return cached_order_;
}

std::optional<std::vector<std::int64_t>> Dataset::batch_rows(std::int64_t index) const {
  const std::int64_t size = std::max<std::int64_t>(1, batch_size_);
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = index * size; i < (index + 1) * size; ++i) {
    const std::int64_t repetition = rows() == 0 ? repetitions_ : i / rows();
    if (repetitions_ != kForever && repetition >= repetitions_) break;
    chosen.push_back(order_of(repetition)[static_cast<std::size_t>(i % rows())]);
  }
  if (chosen.empty() || (drop_remainder_ && static_cast<std::int64_t>(chosen.size()) < size)) return std::nullopt;
  return chosen;
}

}  // namespace tandem
