#include "engine/sim/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "engine/sim/repeated_issue.h"
#include "engine/sim/sim_run.h"
#include "engine/sim/sim_stream.h"
#include "topologies/base/units.h"

namespace tandem::sim {
namespace {

constexpr std::align_val_t kAlignment{64};

// The values of a tensor, or nothing. Unfinished work holds it directly, the program through a SimBuffer.
class SimMemory : public Buffer {
 public:
  explicit SimMemory(Device& device) : device_(device) {}
  SimMemory(Device& device, std::size_t size_bytes)
      : device_(device),
        size_bytes_(size_bytes),
        data_(::operator new(std::max<std::size_t>(size_bytes, 1), kAlignment)) {}
  ~SimMemory() override {
    if (data_ != nullptr) ::operator delete(data_, kAlignment);
  }
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  Device& device() const override { return device_; }
  std::size_t size_bytes() const override { return size_bytes_; }
  void* data() const override { return data_; }
  bool is_host_accessible() const override { return data_ != nullptr; }

 private:
  Device& device_;
  const std::size_t size_bytes_ = 0;
  void* const data_ = nullptr;
};

class SimBuffer : public Buffer {
 public:
  // `memory` holds the values, if there are any.
  SimBuffer(std::shared_ptr<Buffer> memory, std::size_t size_bytes, std::shared_ptr<MemoryPool> pool,
            std::shared_ptr<SimDevice::Use> use)
      : memory_(std::move(memory)), size_bytes_(size_bytes), pool_(std::move(pool)), use_(std::move(use)) {
    pool_->in_use_bytes += static_cast<double>(size_bytes_);
    pool_->peak_bytes = std::max(pool_->peak_bytes, pool_->in_use_bytes);
    use_->in_use += static_cast<std::int64_t>(size_bytes_);
    use_->peak = std::max(use_->peak, use_->in_use);
  }
  ~SimBuffer() override {
    pool_->in_use_bytes -= static_cast<double>(size_bytes_);
    use_->in_use -= static_cast<std::int64_t>(size_bytes_);
  }

  Device& device() const override { return memory_->device(); }
  std::size_t size_bytes() const override { return size_bytes_; }
  void* data() const override { return memory_->data(); }
  bool is_host_accessible() const override { return memory_->is_host_accessible(); }
  std::shared_ptr<Buffer> memory() override { return memory_; }

 private:
  const std::shared_ptr<Buffer> memory_;
  const std::size_t size_bytes_;
  const std::shared_ptr<MemoryPool> pool_;
  const std::shared_ptr<SimDevice::Use> use_;
};

// While it exists, tasks of the device add to some work.
class Adding {
 public:
  Adding(RepeatedWork*& place, RepeatedWork* work) : place_(place) { place_ = work; }
  ~Adding() { place_ = nullptr; }
  Adding(const Adding&) = delete;
  Adding& operator=(const Adding&) = delete;

 private:
  RepeatedWork*& place_;
};

}  // namespace

SimDevice::SimDevice(SimRun& run, DeviceId id, int index, int worker, PhysicalDevice& physical)
    : run_(run), id_(std::move(id)), index_(index), worker_(worker), physical_(physical) {}

SimDevice::~SimDevice() = default;

SimDevice::Work& SimDevice::work() {
  if (!work_) {
    work_ = std::make_unique<Work>();
    work_->no_values = std::make_shared<SimMemory>(*this);
  }
  return *work_;
}

const std::map<int, std::unique_ptr<SimStream>>& SimDevice::streams() const {
  static const std::map<int, std::unique_ptr<SimStream>> none;
  return work_ ? work_->streams : none;
}

Stream& SimDevice::stream(int index) {
  TANDEM_REQUIRE(index >= 0, "a stream with a negative index");
  std::unique_ptr<SimStream>& stream = work().streams[index];
  if (!stream) stream = std::make_unique<SimStream>(*this, index);
  return *stream;
}

Tensor SimDevice::allocate(DType dtype, Shape shape) {
  const auto size_bytes = static_cast<std::size_t>(shape.element_count()) * size_of(dtype);
  if (!physical_.memory) {
    physical_.memory = std::make_shared<MemoryPool>(MemoryPool{.capacity_bytes = costs().memory_bytes()});
  }
  const MemoryPool& pool = *physical_.memory;
  const bool is_host = id_.type != run_.specs()[static_cast<std::size_t>(worker_)].device_type;
  if ((is_host || run_.limits_memory()) && pool.capacity_bytes > 0 &&
      pool.in_use_bytes + static_cast<double>(size_bytes) > pool.capacity_bytes) {
    const auto text = [](double bytes) { return format_quantity(bytes, Dimension::bytes); };
    throw ImpossibleError(fmt::format("{}: out of memory: requested {} for {}{}, in use {} of {} ({})", name(),
                                      text(static_cast<double>(size_bytes)), name_of(dtype), shape.text(),
                                      text(pool.in_use_bytes), text(pool.capacity_bytes), costs().model().name));
  }
  std::shared_ptr<Buffer> memory = work().no_values;
  if (run_.carries_values()) memory = std::make_shared<SimMemory>(*this, size_bytes);
  return {std::make_shared<SimBuffer>(std::move(memory), size_bytes, physical_.memory, work().use), dtype, shape};
}

PlaceOfDevice SimDevice::place() const {
  const WorkerSpec& worker = run_.specs()[static_cast<std::size_t>(worker_)];
  const bool computes = id_.type == worker.device_type && id_.index < worker.device_count;
  return {.index = index_, .worker = worker_, .device = computes ? std::optional(id_.index) : std::nullopt};
}

void SimDevice::note_operands(double bytes) {
  if (!physical_.memory || bytes <= work().operand_bytes) return;
  physical_.memory->operand_bytes += bytes - work().operand_bytes;
  work().operand_bytes = bytes;
}

void SimDevice::synchronize() {
  for (const auto& [index, stream] : streams()) stream->synchronize();
}

void SimDevice::repeat(tandem::RepeatedWork& work, const std::function<void()>& issue) {
  if (!run_.merges_repeats() || threads() != nullptr) return issue();
  if (!work.state) {
    auto repeated = std::make_shared<RepeatedWork>(*this);
    work.state = repeated;
    {
      const Adding adding(this->work().repeated, &*repeated);
      issue();
      repeated->end();
    }
    if (repeated->is_spoilt()) return;
    return repeated->issue(repeated->began_s());
  }
  auto& repeated = static_cast<RepeatedWork&>(*work.state);
  if (repeated.is_spoilt()) return issue();
  SimTask& task = SimTask::current();
  const double began_s = Simulation::now_s() + task.debt_s;
  run_.scheduler().throw_if_failed();
  task.debt_s += repeated.host_s();
  repeated.issue(began_s);
}

void SimDevice::enter_collective() {
  ++work().collectives;
  ++work().collectives_begun;
  disturb();
}

void SimDevice::disturb() {
  if (RepeatedIssue* const together = std::exchange(work().together, nullptr)) together->disturb();
}

RepeatedWork* SimDevice::repeated(bool spoils) {
  RepeatedWork* const repeated = work_ ? work_->repeated : nullptr;
  if (repeated == nullptr || !spoils) return repeated;
  work_->repeated = nullptr;
  repeated->spoil();
  return nullptr;
}

}  // namespace tandem::sim
