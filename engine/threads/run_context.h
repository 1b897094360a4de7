// What all parts of one run share.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>

#include "engine/threads/block_pool.h"
#include "engine/threads/fault_injector.h"
#include "engine/threads/remote_memory.h"
#include "engine/threads/run_control.h"
#include "engine/timeline.h"

namespace tandem::threads {

struct RunContext {
  RunContext(std::shared_ptr<BlockPool> memory_pool, RecordLevel record_level)
      : memory(std::move(memory_pool)), records(record_level) {}

  Nanoseconds now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  }

  // The run's begin in nanoseconds of the steady clock.
  Nanoseconds begin_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(start.time_since_epoch()).count();
  }
  // Keeps the calling thread busy until work that began at `begin` has taken `factor` times as long, or the run ends.
  void hold_back(Nanoseconds begin, double factor) const {
    const Nanoseconds end = begin + static_cast<Nanoseconds>(static_cast<double>(now() - begin) * factor);
    while (now() < end && !control.is_stopped()) {
    }
  }
  bool is_recorded(RecordKind kind) const { return tandem::is_recorded(kind, records); }

  RunControl control;
  RemoteMemory* remote_memory = nullptr;  // where there are other processes
  std::unique_ptr<FaultInjector> faults;  // null: nothing goes wrong on purpose
  std::shared_ptr<BlockPool> memory;
  const RecordLevel records;
  std::atomic<std::int64_t> next_sequence{0};  // of collectives
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

// The part of a worker that its devices see. The first failure of an op is kept: every later synchronize() of the
// worker reports it, and its streams skip their work. After a missed deadline they skip collectives as well.
class WorkerState {
 public:
  explicit WorkerState(int index) : index_(index) {}
  int index() const { return index_; }

  void set_step(int step) { step_.store(step, std::memory_order_relaxed); }
  int step() const { return step_.load(std::memory_order_relaxed); }

  bool has_failed() const { return has_failed_.load(std::memory_order_relaxed); }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    has_failed_.store(true);
  }
  void miss_deadline(const std::exception_ptr& error) {
    fail(error);
    const std::lock_guard lock(mutex_);
    if (!missed_deadline_) missed_deadline_ = error;
  }
  std::exception_ptr missed_deadline() const {  // null when there was none
    if (!has_failed()) return nullptr;
    const std::lock_guard lock(mutex_);
    return missed_deadline_;
  }
  void throw_if_failed() const {
    if (!has_failed()) return;
    const std::lock_guard lock(mutex_);
    std::rethrow_exception(error_);
  }

 private:
  const int index_;
  std::atomic<int> step_{kNoStep};
  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;  // guards the next two
  std::exception_ptr error_;
  std::exception_ptr missed_deadline_;
};

}  // namespace tandem::threads
