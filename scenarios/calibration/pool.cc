#include "scenarios/calibration/pool.h"

#include <algorithm>

#include "scenarios/calibration/plan.h"
#include "scenarios/calibration/random_values.h"

namespace tandem::calibration {
namespace {

constexpr std::int64_t kRandomValues = 256 * 1024;
constexpr std::int64_t kAlignment = 256;  // bytes

// Returns a copy on the device, converted to its type.
Tensor random_tensor(Worker& worker, Device& device, DType dtype) {
  Stream& stream = device.compute_stream();
  Tensor values = device.allocate(DType::f32, {kRandomValues});
  stream.copy(values, random_values(worker.cpu(), DType::f32, kRandomValues), Category::other);
  if (dtype == DType::f32) return values;
  Tensor converted = device.allocate(dtype, {kRandomValues});
  stream.launch(op::cast(converted, values));
  return converted;
}

}  // namespace

Pool::Pool(Worker& worker, Device& device, DType dtype, std::int64_t bytes, std::int64_t small_bytes)
    : block_(device.allocate(dtype, {bytes / static_cast<std::int64_t>(size_of(dtype))})),
      small_(small_bytes / static_cast<std::int64_t>(size_of(dtype))) {
  const Tensor random = random_tensor(worker, device, dtype);
  for (std::int64_t first = 0; first < block_.element_count(); first += kRandomValues) {
    const std::int64_t count = std::min(kRandomValues, block_.element_count() - first);
    device.compute_stream().launch(op::scale_add(block_.flat_slice(first, count), random.flat_slice(0, count), 1, 0));
  }
  device.compute_stream().synchronize();  // its other streams may wait for other workers
}

// An operand larger than a quarter of the small part may use the whole block.
Tensor Pool::take(std::int64_t count) {
  if (next_ + count > reach(count)) next_ = 0;
  Tensor part = block_.flat_slice(next_, count);
  next_ += aligned(count);
  return part;
}

std::int64_t Pool::aligned(std::int64_t count) const {
  const std::int64_t unit = kAlignment / static_cast<std::int64_t>(size_of(block_.dtype()));
  return (count + unit - 1) / unit * unit;
}

std::int64_t Pool::reach(std::int64_t count) const {
  const std::int64_t all = block_.element_count();
  return 4 * count <= small_ ? std::min(small_, all) : all;
}

void Pool::touch(std::int64_t count) const {
  if (small_ == 0 || reach(count) > small_) return;
  const Tensor part = block_.flat_slice(0, reach(count));
  launch_unmeasured(block_.device().compute_stream(), op::scale_add(part, part, 1, 0));
}

void launch_unmeasured(Stream& stream, Op op) {
  op.name = kBlockerLabel;
  stream.launch(std::move(op));
}

std::vector<Pool> pools_of(Worker& worker, DType dtype, std::int64_t bytes, std::int64_t small_bytes) {
  std::vector<Pool> pools;
  for (Device* device : worker.devices()) pools.emplace_back(worker, *device, dtype, bytes, small_bytes);
  return pools;
}

}  // namespace tandem::calibration
