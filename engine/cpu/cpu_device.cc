#include "engine/cpu/cpu_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "topologies/base/units.h"

namespace tandem::cpu {
namespace {

std::string bytes_text(double bytes) {
  return format_quantity(bytes, Dimension::bytes);
}

}  // namespace

std::vector<DType> cpu_dtypes() {
  return {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8};
}

CpuDevice::CpuDevice(threads::RunContext& context, threads::WorkerState& worker, DeviceId id, int index)
    : context_(context), worker_(worker), id_(std::move(id)), index_(index) {}

CpuStream& CpuDevice::stream(int index) {
  TANDEM_REQUIRE(index >= 0, "a stream with a negative index");
  const auto quick = static_cast<std::size_t>(index);
  if (quick < kQuickStreams) {
    if (CpuStream* stream = quick_streams_[quick].load()) return *stream;
  }
  const std::lock_guard lock(mutex_);
  std::unique_ptr<CpuStream>& stream = streams_[index];
  if (!stream) stream = std::make_unique<CpuStream>(context_, worker_, *this, index);
  if (quick < kQuickStreams) quick_streams_[quick].store(stream.get());
  return *stream;
}

Tensor CpuDevice::allocate(DType dtype, Shape shape) {
  const std::vector<DType> known = cpu_dtypes();
  if (std::find(known.begin(), known.end(), dtype) == known.end()) {
    std::vector<std::string_view> names;
    for (const DType each : known) names.push_back(name_of(each));
    throw RunError(
        fmt::format("{}: no tensors of {} (engine 'cpu' has {})", id_.text(), name_of(dtype), fmt::join(names, ", ")));
  }
  const std::size_t bytes = static_cast<std::size_t>(shape.element_count()) * size_of(dtype);
  void* block = context_.memory->take(bytes);
  if (block == nullptr) {
    throw RunError(fmt::format("{}: no memory for a tensor {} of {}, {}: {} in use on this device, {} in the machine",
                               id_.text(), shape.text(), name_of(dtype), bytes_text(static_cast<double>(bytes)),
                               bytes_text(static_cast<double>(memory_in_use_bytes())),
                               bytes_text(static_cast<double>(context_.memory->limit_bytes()))));
  }
  auto memory = std::make_shared<threads::PooledMemory>(*this, context_.memory, block, bytes, true);
  return {std::make_shared<threads::PooledBuffer>(std::move(memory), memory_use_), dtype, shape};
}

void CpuDevice::synchronize() {
  std::vector<CpuStream*> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [index, stream] : streams_) streams.push_back(stream.get());
  }
  for (CpuStream* stream : streams) stream->synchronize();
}

std::vector<Event> CpuDevice::record_all() {
  const std::lock_guard lock(mutex_);
  std::vector<Event> events;
  for (const auto& [index, stream] : streams_) events.push_back(stream->record());
  return events;
}

void CpuDevice::finish(std::vector<Record>& records) {
  const std::lock_guard lock(mutex_);
  for (const auto& [index, stream] : streams_) stream->finish();
  for (const auto& [index, stream] : streams_) stream->take_records(records);
}

}  // namespace tandem::cpu
