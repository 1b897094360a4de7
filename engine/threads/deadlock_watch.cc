#include "engine/threads/deadlock_watch.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <utility>

#include "engine/base/core_rules.h"
#include "topologies/base/error.h"

namespace tandem::threads {
namespace {

constexpr std::chrono::milliseconds kPeriod{50};

}  // namespace

DeadlockWatch::DeadlockWatch(RunControl& control, double timeout_s, Neighbours* neighbours)
    : control_(control), timeout_s_(timeout_s), neighbours_(neighbours), thread_([this] { watch(); }) {}

DeadlockWatch::~DeadlockWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  ends_.notify_one();
  thread_.join();
}

void DeadlockWatch::watch() {
  Look last = look();
  Clock::time_point last_change = Clock::now();
  std::unique_lock lock(mutex_);
  Clock::time_point next = last_change + kPeriod;
  while (!ends_.wait_for(lock, kCoreTick, [this] { return is_ending_; })) {
    control_.cores().relieve();
    if (Clock::now() < next) continue;
    next += kPeriod;
    Look now = look();
    const bool has_changed = now.signature != last.signature;
    const bool is_stuck = !has_changed && now.is_stuck() && last.is_stuck();
    if (neighbours_ != nullptr) {
      const bool is_still = !has_changed && now.is_still() && last.is_still();
      neighbours_->note_still(is_still ? std::optional(waits()) : std::nullopt);
    }
    if (has_changed) {
      last_change = Clock::now();
    } else if (is_stuck) {
      if (neighbours_ != nullptr) continue;
      return declare("deadlock: " + waits());
    } else if (now.is_anybody_blocked && !now.is_stream_running && !now.is_deadline_awaited &&
               std::chrono::duration<double>(Clock::now() - last_change).count() > timeout_s_) {
      return declare(
          fmt::format("no progress for {} s: {}; another task sleeps outside the engine", timeout_s_, waits()));
    }
    last = std::move(now);
  }
}

void DeadlockWatch::declare(std::string message) {
  if (neighbours_ != nullptr) return neighbours_->fail(std::make_exception_ptr(DeadlockError(message)));
  control_.stop(std::move(message));
}

DeadlockWatch::Look DeadlockWatch::look() const {
  Look look;
  control_.for_each_waiter([&](const Waiter& waiter) {
    const Waiter::Observation seen = waiter.observe();
    look.is_anybody_blocked |= seen.state == Waiter::State::blocked;
    look.is_anybody_running |= seen.state == Waiter::State::running;
    look.is_deadline_awaited |= seen.state == Waiter::State::blocked_until_deadline;
    look.is_stream_running |= seen.state == Waiter::State::running && !seen.is_task;
    look.signature.push_back(reinterpret_cast<std::uintptr_t>(&waiter));
    look.signature.push_back(seen.waits);
    look.signature.push_back(static_cast<std::uint64_t>(seen.cpu_time_ns));
  });
  return look;
}

// Lists the waits of tasks first, because tasks run the user's code.
std::string DeadlockWatch::waits() const {
  constexpr int kStreamsAtMost = 16;
  std::string tasks;
  std::string streams;
  int stream_count = 0;
  control_.for_each_waiter([&](const Waiter& waiter) {
    const std::string text = waiter.wait_text();
    if (text.empty()) return;
    const bool is_task = waiter.observe().is_task;
    if (!is_task && ++stream_count > kStreamsAtMost) return;
    std::string& list = is_task ? tasks : streams;
    list += (list.empty() ? "" : "; ") + text;
  });
  if (stream_count > kStreamsAtMost) streams += fmt::format("; and {} more streams", stream_count - kStreamsAtMost);
  return tasks + (tasks.empty() || streams.empty() ? "" : "; ") + streams;
}

}  // namespace tandem::threads
