#include "scenarios/calibration/random_values.h"

#include <algorithm>
#include <random>

#include "engine/op.h"

namespace tandem {

Tensor random_values(Device& host, DType dtype, std::int64_t count) {
  Tensor values = host.allocate(DType::f32, {count});
  std::mt19937_64 random(1);
  for (float& value : values.values<float>()) {
    value = static_cast<float>(random() >> 40) / static_cast<float>(1 << 23) - 1;  // 24 bits, exact in a float
  }
  if (dtype == DType::f32) return values;
  Tensor converted = host.allocate(dtype, {count});
  host.compute_stream().launch(op::cast(converted, values));
  host.compute_stream().synchronize();
  return converted;
}

// Each copy doubles what is there.
void fill_randomly(const Tensor& to, Device& host) {
  constexpr std::int64_t kValues = 64 * 1024;
  const std::int64_t count = to.element_count();
  Stream& stream = to.device().compute_stream();
  const std::int64_t first = std::min(kValues, count);
  stream.copy(to.flat_slice(0, first), random_values(host, to.dtype(), first), Category::other);
  for (std::int64_t filled = first; filled < count; filled *= 2) {
    const std::int64_t more = std::min(filled, count - filled);
    stream.copy(to.flat_slice(filled, more), to.flat_slice(0, more), Category::other);
  }
}

}  // namespace tandem
