// A logical device of the cpu engine: a memory account and a set of streams, each with a thread of its own.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/cpu/cpu_stream.h"

namespace tandem::cpu {

class CpuDevice final : public threads::LocalDevice {
 public:
  CpuDevice(threads::RunContext& context, threads::WorkerState& worker, DeviceId id, int index);

  const DeviceId& id() const override { return id_; }
  int index() const override { return index_; }
  int worker() const override { return worker_.index(); }
  CpuStream& stream(int index) override;
  Tensor allocate(DType dtype, Shape shape) override;
  const threads::MemoryUse& memory_use() const override { return *memory_use_; }
  void synchronize() override;

  // Returns events that are complete once everything issued to the device so far is done.
  std::vector<Event> record_all();
  void finish(std::vector<Record>& records) override;

 private:
  static constexpr std::size_t kQuickStreams = 8;

  threads::RunContext& context_;
  threads::WorkerState& worker_;
  const DeviceId id_;
  const int index_;
  const std::shared_ptr<threads::MemoryUse> memory_use_ = std::make_shared<threads::MemoryUse>();
  std::array<std::atomic<CpuStream*>, kQuickStreams> quick_streams_{};  // the usual ones, read without the lock
  std::mutex mutex_;                                                    // guards streams_
  std::map<int, std::unique_ptr<CpuStream>> streams_;
};

// Returns the element types that a CPU computes with.
std::vector<DType> cpu_dtypes();

}  // namespace tandem::cpu
