#include "engine/sim/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "engine/sim/sim_run.h"
#include "engine/sim/sim_stream.h"
#include "topologies/base/units.h"

namespace tandem::sim {
namespace {

constexpr std::align_val_t kAlignment{64};

class SimBuffer : public Buffer {
 public:
  SimBuffer(Device& device, std::size_t size_bytes, bool has_values, std::shared_ptr<MemoryPool> pool,
            std::shared_ptr<SimDevice::Use> use)
      : device_(device), size_bytes_(size_bytes), pool_(std::move(pool)), use_(std::move(use)) {
    if (has_values) data_ = ::operator new(std::max<std::size_t>(size_bytes, 1), kAlignment);
    pool_->in_use_bytes += static_cast<double>(size_bytes_);
    use_->in_use += static_cast<std::int64_t>(size_bytes_);
    use_->peak = std::max(use_->peak, use_->in_use);
  }
  ~SimBuffer() override {
    if (data_ != nullptr) ::operator delete(data_, kAlignment);
    pool_->in_use_bytes -= static_cast<double>(size_bytes_);
    use_->in_use -= static_cast<std::int64_t>(size_bytes_);
  }

  Device& device() const override { return device_; }
  std::size_t size_bytes() const override { return size_bytes_; }
  void* data() const override { return data_; }
  bool is_host_accessible() const override { return data_ != nullptr; }

 private:
  Device& device_;
  std::size_t size_bytes_;
  std::shared_ptr<MemoryPool> pool_;
  std::shared_ptr<SimDevice::Use> use_;
  void* data_ = nullptr;
};

}  // namespace

SimDevice::SimDevice(SimRun& run, DeviceId id, int index, int worker, PhysicalDevice& physical)
    : run_(run), id_(std::move(id)), name_(id_.text()), index_(index), worker_(worker), physical_(physical) {}

SimDevice::~SimDevice() = default;

Stream& SimDevice::stream(int index) {
  TANDEM_REQUIRE(index >= 0, "a stream with a negative index");
  std::unique_ptr<SimStream>& stream = streams_[index];
  if (!stream) stream = std::make_unique<SimStream>(*this, index);
  return *stream;
}

Tensor SimDevice::allocate(DType dtype, Shape shape) {
  const auto size_bytes = static_cast<std::size_t>(shape.element_count()) * size_of(dtype);
  const MemoryPool& pool = *physical_.memory;
  if (pool.capacity_bytes > 0 && pool.in_use_bytes + static_cast<double>(size_bytes) > pool.capacity_bytes) {
    const auto text = [](double bytes) { return format_quantity(bytes, Dimension::bytes); };
    throw RunError(fmt::format("{}: out of memory: requested {} for {}{}, in use {} of {} ({})", name_,
                               text(static_cast<double>(size_bytes)), name_of(dtype), shape.text(),
                               text(pool.in_use_bytes), text(pool.capacity_bytes), costs().model().name));
  }
  auto buffer = std::make_shared<SimBuffer>(*this, size_bytes, run_.carries_values(), physical_.memory, use_);
  return {std::move(buffer), dtype, shape};
}

void SimDevice::synchronize() {
  for (const auto& [index, stream] : streams_) stream->synchronize();
}

}  // namespace tandem::sim
