// Where the threads of a cpu run wait. Tasks and streams block in Waiter::wait and nowhere else, so that a
// deadlock can be seen and named, and a failed run can wake everybody.
//
// Threads: a Waiter waits on its own thread; everything else here may be called from any.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/task.h"

namespace tandem::threads {

class RunControl;
class Waiter;

int available_cores();

using Clock = std::chrono::steady_clock;
inline constexpr Clock::time_point kNever = Clock::time_point::max();

// Why a thread waits. Called from any thread while the wait lasts, so both read atomics only. What makes is_over()
// true is stored in sequentially consistent order before the waiters are woken.
class Wait {
 public:
  virtual bool is_over() const = 0;
  virtual std::string text() const = 0;           // completes "<who> waits for ..."
  virtual bool is_idle() const { return false; }  // a thread without work is no part of a deadlock
  // When it is over at the latest. Who waits for a date can still go on, so nothing is a deadlock meanwhile.
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
  std::mutex mutex_;
  std::vector<Waiter*> waiters_;
};

enum class Stoppable : bool { no, yes };

// What a thread does before it blocks, each of them at most once, the innermost first.
struct BeforeBlocking {
  std::function<void()> call;  // does not throw, and may be called again
  BeforeBlocking* outer = nullptr;
};

class Waiter {
 public:
  // `name` is who waits when there is no task: a stream.
  Waiter(RunControl& control, std::string name);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  static Waiter& of_this_thread();
  void use_on_this_thread();  // also counts the thread as one that wants a core
  void leave_this_thread();
  // Whose name and blocking this is; null between tasks. Returns the one before.
  Task* set_task(Task* task);

  // Of this thread, for the time until it is set back. Returns the one before.
  BeforeBlocking* set_before_blocking(BeforeBlocking* before) { return std::exchange(before_blocking_, before); }

  // Returns when the wait is over; false when the run was stopped first. Spins for a few microseconds while a core
  // is free, then sleeps until woken through `list` (or unpark).
  bool wait(const Wait& wait, WaitList* list, Stoppable stoppable);
  void unpark();

  // What the deadlock watch sees.
  enum class State : std::uint8_t { running, idle, blocked, blocked_until_a_date };
  struct Observation {
    State state = State::running;
    bool is_task = false;
    std::uint64_t waits = 0;       // changes whenever the thread has waited anew
    std::int64_t cpu_time_ns = 0;  // of a running task's thread
  };
  Observation observe() const;
  std::string wait_text() const;  // "worker 0 waits for ...", empty unless blocked

 private:
  bool spin(const Wait& wait);
  void park(Clock::time_point until);
  void note_cpu();  // on which this thread runs now
  void leave_cpu();

  static constexpr int kNothing = 0, kPermit = 1, kParked = -1;

  RunControl& control_;
  const std::string name_;
  std::atomic<int> token_{kNothing};
  mutable std::mutex mutex_;  // of what follows
  const Wait* wait_ = nullptr;
  Task* task_ = nullptr;
  std::uint64_t waits_ = 0;
  clockid_t cpu_clock_{};
  bool has_thread_ = false;
  BeforeBlocking* before_blocking_ = nullptr;  // this thread's own
  static constexpr int kNoCpu = -1;
  int cpu_ = kNoCpu;  // this thread's own
};

// Thrown by blocking calls of a run that another task's exception has ended. No std::exception, so that programs
// that handle errors do not handle it.
struct RunStopped {};

// What the threads of one run share: who they are, how many want a core, and whether the run goes on.
class RunControl {
 public:
  RunControl();

  void add(Waiter& waiter);
  void remove(Waiter& waiter);
  // Calls function(waiter) for every waiter; none is added or removed meanwhile.
  template <typename Function>
  void for_each_waiter(Function&& function) const {
    const std::lock_guard lock(mutex_);
    for (Waiter* waiter : waiters_) function(*waiter);
  }

  // Ends the run: every stoppable wait returns. With a message it ends in a deadlock. Only the first call counts.
  void stop(std::string deadlock_message = "");
  bool is_stopped() const { return is_stopped_.load(); }
  std::string deadlock_message() const;  // empty where stop() had none
  [[noreturn]] void throw_stopped() const;

  // As Waiter::wait of the calling task, but throws when the run was stopped, before or meanwhile.
  void wait_as_task(const Wait& wait, WaitList* list);

  std::atomic<int>& active_threads() { return active_threads_; }
  int hardware_threads() const { return hardware_threads_; }
  std::atomic<int>& waking_threads() { return waking_threads_; }  // of the active ones, those without a core yet
  // Of those, the ones last seen on this core; a hint only, since threads move without telling.
  std::atomic<int>& active_threads_on(int cpu) { return active_on_cpu_[static_cast<std::size_t>(cpu) % kCpus]; }

 private:
  mutable std::mutex mutex_;
  std::vector<Waiter*> waiters_;
  std::string deadlock_message_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<int> active_threads_{0};  // threads that run or are about to
  std::atomic<int> waking_threads_{0};
  static constexpr std::size_t kCpus = 256;
  std::array<std::atomic<int>, kCpus> active_on_cpu_{};
  const int hardware_threads_;
};

}  // namespace tandem::threads
