#include <cstring>

#include "engine/kernels/element_types.h"
#include "engine/kernels/layers.h"

namespace tandem {
namespace {

// A run along the innermost axis; elements are no more than bytes.
template <typename Unit>
void copy_run(Unit* to, const Unit* from, std::int64_t count, std::int64_t to_stride, std::int64_t from_stride) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Unit));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
}

template <typename Unit>
void copy_elements(const kernel::CopyStrided& op) {
  const auto& [sizes, to_first, from_first, to_strides, from_strides] = op.copy;
  if (sizes[3] == 0) return;
  Unit* const first_to = elements<Unit>(op.to) + to_first;
  const Unit* const first_from = elements<const Unit>(op.from) + from_first;
  for (std::int64_t x = 0; x < sizes[0]; ++x) {
    for (std::int64_t y = 0; y < sizes[1]; ++y) {
      for (std::int64_t z = 0; z < sizes[2]; ++z) {
        Unit* const to = first_to + x * to_strides[0] + y * to_strides[1] + z * to_strides[2];
        const Unit* const from = first_from + x * from_strides[0] + y * from_strides[1] + z * from_strides[2];
        copy_run(to, from, sizes[3], to_strides[3], from_strides[3]);
      }
    }
  }
}

}  // namespace

void execute_copy_strided(const kernel::CopyStrided& op) {
  switch (size_of(op.to.dtype())) {
    case 1:
      return copy_elements<std::uint8_t>(op);
    case 2:
      return copy_elements<std::uint16_t>(op);
    case 4:
      return copy_elements<std::uint32_t>(op);
    default:
      return copy_elements<std::uint64_t>(op);
  }
}

}  // namespace tandem
