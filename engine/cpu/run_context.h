// What all parts of one run of the cpu engine share.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "engine/cpu/memory_pool.h"
#include "engine/cpu/waiter.h"
#include "engine/timeline.h"

namespace tandem::cpu {

struct RunContext {
  explicit RunContext(std::shared_ptr<MemoryPool> memory_pool) : memory(std::move(memory_pool)) {}

  Nanoseconds now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  }

  RunControl control;
  std::shared_ptr<MemoryPool> memory;
  std::atomic<std::int64_t> next_sequence{0};  // of collectives
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

// The part of a worker that its devices see. The first failure of an op stays: every later synchronize() of the
// worker reports it, and its streams skip their work.
class WorkerState {
 public:
  explicit WorkerState(int index) : index_(index) {}
  int index() const { return index_; }

  void set_step(int step) { step_.store(step, std::memory_order_relaxed); }
  int step() const { return step_.load(std::memory_order_relaxed); }

  bool has_failed() const { return has_failed_.load(std::memory_order_relaxed); }
  void fail(std::string message) {
    const std::lock_guard lock(mutex_);
    if (message_.empty()) message_ = std::move(message);
    has_failed_.store(true);
  }
  void throw_if_failed() const {
    if (!has_failed()) return;
    const std::lock_guard lock(mutex_);
    throw RunError(message_);
  }

 private:
  const int index_;
  std::atomic<int> step_{kNoStep};
  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;
  std::string message_;
};

}  // namespace tandem::cpu
