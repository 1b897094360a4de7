// Sleeping on an atomic. std::atomic::wait would spin first and yield its core to whatever else the machine runs.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>

namespace tandem::threads {

// Returns when `value` is not `old`, and after `until` in any case.
inline void sleep_while(std::atomic<int>& value, int old, std::chrono::steady_clock::time_point until) {
  using Steady = std::chrono::steady_clock;
  static_assert(sizeof(std::atomic<int>) == sizeof(int));
  while (value.load() == old) {
    timespec left{};
    const bool is_timed = until != Steady::time_point::max();
    if (is_timed) {
      const auto left_ns = std::chrono::nanoseconds(until - Steady::now()).count();
      if (left_ns <= 0) return;
      left = {.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
    }
    syscall(SYS_futex, reinterpret_cast<int*>(&value), FUTEX_WAIT_PRIVATE, old, is_timed ? &left : nullptr, nullptr, 0);
  }
}

inline void wake_sleeper(std::atomic<int>& value) {
  syscall(SYS_futex, reinterpret_cast<int*>(&value), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace tandem::threads
