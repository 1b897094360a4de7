#include <algorithm>
#include <bit>
#include <vector>

#include "engine/base/small_floats.h"
#include "engine/kernels/layers.h"
#include "engine/kernels/rows.h"

namespace tandem {
namespace {

// The bits of a magnitude, which have the order of the numbers; 0 for NaN.
std::int32_t magnitude_bits(float value) {
  constexpr std::int32_t kInfiniteBits = 0x7f800000;
  const std::int32_t bits = std::bit_cast<std::int32_t>(value) & 0x7fffffff;
  return bits > kInfiniteBits ? 0 : bits;
}

// The larger of `most` and the magnitudes. NaN is passed over.
float raised(float most, const float* a, std::int64_t count) {
  std::int32_t bits = magnitude_bits(most);
  for (std::int64_t i = 0; i < count; ++i) bits = std::max(bits, magnitude_bits(a[i]));
  return std::bit_cast<float>(bits);
}

// The same for each of `count` numbers.
void raise_each(float* most, const float* a, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) most[i] = raised(most[i], a + i, 1);
}

struct MatrixBlocks {
  std::int64_t rows, columns;              // of a matrix
  std::int64_t block_rows, block_columns;  // of a block
  std::int64_t across() const { return (columns + block_columns - 1) / block_columns; }
};

// Calls visit(block across the matrix, place of its first column, how many of its columns there are).
template <typename Visit>
void for_each_block(const MatrixBlocks& blocks, Visit&& visit) {
  for (std::int64_t block = 0, first = 0; first < blocks.columns; ++block, first += blocks.block_columns) {
    visit(static_cast<std::size_t>(block), first, std::min(blocks.block_columns, blocks.columns - first));
  }
}

void raise_row(const MatrixBlocks& blocks, const float* a, std::vector<float>& maxima) {
  if (blocks.block_columns == 1) return raise_each(maxima.data(), a, blocks.columns);
  for_each_block(blocks, [&](std::size_t block, std::int64_t column, std::int64_t count) {
    maxima[block] = raised(maxima[block], a + column, count);
  });
}

template <SmallFloat kFormat>
void round_row(const MatrixBlocks& blocks, float* to, const float* a, const std::vector<SmallFloatScale>& scales) {
  if (blocks.block_columns == 1) {
    const SmallFloatScale* scale = scales.data();
    for (std::int64_t i = 0; i < blocks.columns; ++i) to[i] = rounded_to<kFormat>(a[i], scale[i]);
    return;
  }
  for_each_block(blocks, [&](std::size_t block, std::int64_t column, std::int64_t count) {
    const SmallFloatScale scale = scales[block];
    for (std::int64_t i = column; i < column + count; ++i) to[i] = rounded_to<kFormat>(a[i], scale);
  });
}

// Quantises the rows of a matrix that have their blocks in common.
template <SmallFloat kFormat>
void quantise_band(const kernel::Quantise& op, const MatrixBlocks& blocks, std::int64_t first, std::int64_t rows,
                   std::vector<float>& maxima) {
  const float* a = elements<const float>(op.a) + first;
  float* to = elements<float>(op.to) + first;
  const float tensor = op.maximum ? *elements<const float>(op.maximum) : 0;
  if (op.maximum && op.settings.scale == ScaleType::f32) {
    std::fill(maxima.begin(), maxima.end(), tensor);
  } else {
    std::fill(maxima.begin(), maxima.end(), 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) raise_row(blocks, a + row * blocks.columns, maxima);
  }
  std::vector<SmallFloatScale> scales(maxima.size());
  std::transform(maxima.begin(), maxima.end(), scales.begin(),
                 [&](float most) { return small_float_scale<kFormat>(op.settings.scale, most, tensor); });
  for (std::int64_t row = 0; row < rows; ++row) {
    round_row<kFormat>(blocks, to + row * blocks.columns, a + row * blocks.columns, scales);
  }
}

}  // namespace

void execute_raise_maximum(const kernel::RaiseMaximum& op) {
  float& maximum = *elements<float>(op.maximum);
  maximum = raised(maximum, elements<const float>(op.a), op.a.element_count());
}

void execute_quantise(const kernel::Quantise& op) {
  if (op.a.element_count() == 0) return;
  const Shape& shape = op.a.shape();
  MatrixBlocks blocks{.rows = shape[shape.rank() - 2], .columns = last_axis(op.a), .block_rows = 0, .block_columns = 0};
  blocks.block_rows = op.settings.rows > 0 ? op.settings.rows : blocks.rows;
  blocks.block_columns = op.settings.columns > 0 ? op.settings.columns : blocks.columns;
  std::vector<float> maxima(static_cast<std::size_t>(blocks.across()));
  with_small_float(op.settings.format, [&]<SmallFloat kFormat>() {
    for (std::int64_t matrix = 0; matrix < op.a.element_count(); matrix += blocks.rows * blocks.columns) {
      for (std::int64_t row = 0; row < blocks.rows; row += blocks.block_rows) {
        quantise_band<kFormat>(op, blocks, matrix + row * blocks.columns,
                               std::min(blocks.block_rows, blocks.rows - row), maxima);
      }
    }
  });
}

}  // namespace tandem
