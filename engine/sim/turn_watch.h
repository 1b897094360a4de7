// Ends the process when a simulation stands still because the thread on which its tasks take turns is blocked outside
// the engine, such as in a mutex of the operating system that a waiting task holds. Nothing else could end it: the
// other tasks, and the simulated clock, go on only when that thread does.
//
// It looks several times in the timeout. The thread is blocked if it sleeps each time, nothing has happened in the
// simulation meanwhile, and the process has used next to no CPU time: a long kernel that computes values, in this
// thread or in others, is never taken for that, and neither is a process that was stopped or gets no processor.
//
// Threads: turn() is called by the simulation; the watch has a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tandem::sim {

class TurnWatch {
 public:
  using Text = std::function<std::string()>;

  // `where` says where the tasks stand; it is called while the simulation's thread is blocked. A timeout of 0: does not
  // watch.
  TurnWatch(double timeout_s, Text where);
  ~TurnWatch();
  TurnWatch(const TurnWatch&) = delete;
  TurnWatch& operator=(const TurnWatch&) = delete;

  // Something happens in the simulation: a task goes on, or an activity ends.
  void turn() {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    if constexpr (kTasksAreThreads) note_thread();
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kTasksAreThreads = true;  // see simgrid_compat::configure()
#else
  static constexpr bool kTasksAreThreads = false;
#endif
  void note_thread();
  void watch(const std::stop_token& stop);
  void end_process(std::uint64_t turns) const;  // unless a turn has been taken since `turns` were counted

  const double timeout_s_;
  const Text where_;
  std::atomic<std::uint64_t> turns_ = 0;
  std::atomic<int> thread_;  // the system's number of the thread that has the turn
  std::mutex mutex_;         // guards nothing: end_ needs one to wait
  std::condition_variable_any end_;
  std::jthread thread_of_watch_;
};

// Returns the timeout of simulations: a minute, unless TANDEM_SIM_WATCHDOG_S sets another one. Throws tandem::Error for
// a value that is no number of seconds.
double sim_watchdog_s();

}  // namespace tandem::sim
