// What goes wrong on purpose in a run of threads (EngineOptions::faults): devices that hold their ops back, workers
// that are lost.
//
// Threads: any. Workers that come back are lost, and come back, on a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "engine/faults/faults.h"
#include "engine/worker.h"

namespace tandem::threads {

class ThreadMonitor;

class FaultInjector {
 public:
  // `kill` ends the process that has a lost worker, where workers are processes of their own; where it is empty, or
  // returns, the worker ends with lost_worker_error().
  FaultInjector(const Faults& faults, std::vector<WorkerSpec> workers, std::function<void()> kill)
      : faults_(faults), workers_(std::move(workers)), kill_(std::move(kill)), uses_(workers_.size()) {}
  ~FaultInjector();
  FaultInjector(const FaultInjector&) = delete;
  FaultInjector& operator=(const FaultInjector&) = delete;

  // A worker begins a step at this moment of the run. Throws if it is lost, and the run ends with it.
  void begin_step(int worker, int step, Nanoseconds now);
  // Throws if the worker is lost by now, at a date, and the run ends with it.
  void check(int worker, Nanoseconds now) const;
  // See tandem::slowdown_of().
  double slowdown_of(int worker, const DeviceId& device, Nanoseconds now, int step) const;

  // See Worker.
  bool is_lost(int worker) const;
  int losses(int worker) const;
  // Somebody gives work to a device of this worker, or waits for it. Throws lost_worker_error() where it is lost, but
  // not where its process is.
  void note_use(int worker);
  // Whether a worker was lost for good, so that the run ends with its error, which then is that of all workers.
  bool has_ended_run() const { return has_ended_run_.load(); }
  void watch(std::shared_ptr<ThreadMonitor> monitor);
  // The worker's process is lost for good.
  void lose_process(int worker);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Nanoseconds kNotBegun = -1;
  double seconds_of(Nanoseconds now) const;  // since the first step began; less than 0 before
  void count_use(int worker);
  void throw_if_lost(int worker) const;
  void lose(const LostWorker& lost) const;
  void lose_for_a_while(const LostWorker& lost, Clock::time_point date);
  void change_workers();  // on the thread
  // Whether the worker itself ends, in its own process.
  bool ends_worker(const LostWorker& lost) const { return lost.ends_run || kill_ != nullptr; }
  void set_lost(const LostWorker& lost, bool is_lost);
  void notify();

  const Faults& faults_;
  mutable std::atomic<bool> has_ended_run_{false};
  const std::vector<WorkerSpec> workers_;
  const std::function<void()> kill_;
  std::atomic<Nanoseconds> begin_{kNotBegun};
  std::vector<std::atomic<std::int64_t>> uses_;  // so far, by worker

  mutable std::mutex mutex_;  // guards the next seven
  std::condition_variable changed_;
  struct Change {
    const LostWorker* lost = nullptr;
    bool is_lost = true;
  };
  std::multimap<Clock::time_point, Change> changes_;
  std::map<int, int> losses_;               // so far, by worker
  std::map<int, std::exception_ptr> lost_;  // the errors, by worker
  std::set<int> gone_;                      // workers whose processes are lost
  std::vector<std::shared_ptr<ThreadMonitor>> watchers_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tandem::threads
