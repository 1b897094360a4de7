// The cores of this process, which the threads of a run share if they compute on them.
//
// Where more threads can run than there are cores, an operating system decides badly for this work: it leaves a thread
// waiting behind another one for up to its next tick (4 ms) while a core is idle, and so a step takes half as long
// again, or not. So no more threads run than there are cores. The others wait in line: tasks first, since they feed the
// devices, then streams, each in the order in which they came. A thread gives its core to the first in line
//   - when it blocks,
//   - a stream between two ops, if a task is in line, or if it has had its turn and any thread is.
// A thread that has waited for kCorePatience runs anyway and shares a core: ops may be long, and a user's function may
// wait for something that the engine does not see.
//
// Threads: any.
#pragma once

#include <sched.h>

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <chrono>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace tandem::threads {

// Returns how many processors this process may use, which may be fewer than the machine has.
int available_cores();

class Cores {
 public:
  using Clock = std::chrono::steady_clock;
  // Instead of a processor's number: none, or any; and what a thread has inherited from the one that has started it.
  static constexpr int kAnyCpu = -1, kUnknownCpu = -2;

  // What one thread has of the cores. It is used by its own thread, and by those that grant it a core.
  class Claim {
   public:
    explicit Claim(bool is_task) : is_task_(is_task) {}
    void use_on_this_thread();
    bool is_task() const { return is_task_; }

   private:
    friend class Cores;
    const bool is_task_;
    pid_t thread_ = 0;
    std::atomic<int> may_run_{0};
    int bound_to_ = kUnknownCpu;  // where the system may run its thread; used by whoever grants it a core
    // Guarded by Cores::mutex_.
    int cpu_ = kAnyCpu;  // of its core
    int last_cpu_ = kAnyCpu;
    bool is_kept_ = false;       // requested again before it was released
    Clock::time_point since_{};  // when it got its core, or in line
  };

  // From now on, no more threads run than there are cores. Called before any thread has a claim.
  void limit();
  bool are_limited() const { return is_limited_; }
  bool has_line() const { return in_line_.load(std::memory_order_relaxed) > 0; }

  // Puts the claim, whose thread sleeps or is about to, in line for a core. Where one is free, it gets it now or, if
  // the caller will soon block or call another function of this object, then: a thread that takes over the caller's
  // core runs within 5 us, and one that wakes another core after 20 to 60.
  enum class When : bool { now, soon };
  void request(Claim& claim, When when);
  // Waits on the claim's own thread, after a release, for a core; until a date at the latest.
  void sleep(Claim& claim, Clock::time_point until) const;
  // The same for what has been requested.
  void await(Claim& claim) const;
  // Gives the core of the claim, the caller's own, to the first in line, unless it was requested again meanwhile.
  void release(Claim& claim);
  // Called by a stream between two ops.
  void offer(Claim& claim);
  // Gives free cores to those in line.
  void serve_line();
  // Also lets those run that have waited for kCorePatience.
  void relieve();

 private:
  using Grants = boost::container::small_vector<std::pair<Claim*, int>, 4>;
  void hand_over(int cpu, Grants& grants);
  void use_free_cores(Grants& grants);
  void grant_first(int cpu, Grants& grants);
  void run(const Grants& grants) const;

  bool is_limited_ = false;
  cpu_set_t allowed_;
  std::atomic<int> in_line_{0};
  std::mutex mutex_;                    // guards the rest
  std::vector<int> free_;               // processors
  std::deque<Claim*> tasks_, streams_;  // in line
};

}  // namespace tandem::threads
