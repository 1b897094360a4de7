// Derives shapes from others.
#pragma once

#include <vector>

#include "engine/tensor.h"

namespace tandem {

// The shape with `size` elements along `axis`, which is counted from 0 and less than the rank.
inline Shape with_dimension(const Shape& shape, int axis, std::int64_t size) {
  std::vector<std::int64_t> dimensions(shape.dimensions().begin(), shape.dimensions().end());
  dimensions.at(static_cast<std::size_t>(axis)) = size;
  return Shape(std::span<const std::int64_t>(dimensions));
}

// The shape without `axis`.
inline Shape without_axis(const Shape& shape, int axis) {
  std::vector<std::int64_t> dimensions(shape.dimensions().begin(), shape.dimensions().end());
  dimensions.erase(dimensions.begin() + axis);
  return Shape(std::span<const std::int64_t>(dimensions));
}

}  // namespace tandem
