// How the threads of a run wait. Tasks and streams block in Waiter::wait and nowhere else, so that a deadlock can be
// seen and named, and a failed run can wake all its threads.
//
// Threads: a Waiter waits on its own thread; everything else here may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/task.h"
#include "engine/threads/cores.h"

namespace tandem::threads {

class RunControl;
class Waiter;

using Clock = std::chrono::steady_clock;
inline constexpr Clock::time_point kNever = Clock::time_point::max();
// Returns the deadline of a timeout that begins now: kNever without one.
Clock::time_point deadline_after(std::optional<double> timeout_s);

// The reason why a thread waits. Any thread may call is_over() and text() while the wait lasts, so both read atomics
// only. Whoever makes is_over() true stores it in sequentially consistent order before waking the waiters.
class Wait {
 public:
  virtual bool is_over() const = 0;
  virtual std::string text() const = 0;           // completes "<who> waits for ..."
  virtual bool is_idle() const { return false; }  // a thread without work is no part of a deadlock
  // Returns when the wait ends at the latest. A thread that waits for a deadline will go on, so its wait is part of no
  // deadlock before that.
  virtual Clock::time_point ends_at() const { return kNever; }

 protected:
  ~Wait() = default;
};

// The threads to wake when something happens. Costs one atomic load to notify when nobody waits.
class WaitList {
 public:
  void add(Waiter& waiter);
  void remove(Waiter& waiter);
  void wake_all();
  void wake(int count);

 private:
  std::atomic<int> count_{0};
  std::mutex mutex_;  // guards waiters_
  std::vector<Waiter*> waiters_;
};

enum class Stoppable : bool { no, yes };

// A hook that a thread calls before it blocks. Hooks nest; the innermost is called first.
struct BeforeBlocking {
  std::function<void()> call;  // does not throw, and may be called again
  BeforeBlocking* outer = nullptr;
};

class Waiter {
 public:
  // `name` says who waits where there is no task: a stream. `is_of_tasks`: whether its thread runs tasks.
  Waiter(RunControl& control, std::string name, bool is_of_tasks);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  static Waiter& of_this_thread();
  void use_on_this_thread();  // also counts the thread as one that wants a core
  void leave_this_thread();
  // Sets the task that runs on this thread, null between tasks. Returns the previous one.
  Task* set_task(Task* task);

  // Installs a hook for this thread. Returns the previous one, which the caller must restore.
  BeforeBlocking* set_before_blocking(BeforeBlocking* before) { return std::exchange(before_blocking_, before); }

  // Returns when the wait is over; false when the run was stopped first. Spins for a few microseconds while a core
  // is free, then sleeps until woken through `list` (or unpark).
  bool wait(const Wait& wait, WaitList* list, Stoppable stoppable);
  void unpark();
  // Lets threads that wait for a core go first, if it is their turn.
  void offer_core();

  // What the deadlock watch sees of a thread.
  enum class State : std::uint8_t { running, idle, blocked, blocked_until_deadline };
  struct Observation {
    State state = State::running;
    bool is_task = false;
    std::uint64_t waits = 0;       // counts the waits that this thread has begun
    std::int64_t cpu_time_ns = 0;  // of a running task's thread
  };
  Observation observe() const;
  std::string wait_text() const;  // "worker 0 waits for ...", empty unless blocked

 private:
  bool spin(const Wait& wait);
  void park(Clock::time_point until);
  void note_cpu();  // notes on which processor this thread runs now
  void leave_cpu();

  static constexpr int kNothing = 0, kPermit = 1, kParked = -1;

  RunControl& control_;
  const std::string name_;
  Cores::Claim claim_;
  std::atomic<int> token_{kNothing};
  mutable std::mutex mutex_;  // guards the members down to has_thread_
  const Wait* wait_ = nullptr;
  Task* task_ = nullptr;
  std::uint64_t waits_ = 0;
  clockid_t cpu_clock_{};
  bool has_thread_ = false;
  BeforeBlocking* before_blocking_ = nullptr;  // used by this thread only
  static constexpr int kNoCpu = -1;
  int cpu_ = kNoCpu;  // used by this thread only
};

}  // namespace tandem::threads
