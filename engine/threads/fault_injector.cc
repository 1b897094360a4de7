#include "engine/threads/fault_injector.h"

#include <cmath>
#include <utility>

#include "engine/threads/thread_monitor.h"

namespace tandem::threads {

FaultInjector::~FaultInjector() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FaultInjector::begin_step(int worker, int step, Nanoseconds now) {
  Nanoseconds none = kNotBegun;
  const Clock::time_point date = Clock::now();
  if (begin_.compare_exchange_strong(none, now)) {
    for (const LostWorker& lost : faults_.lost_workers) {
      if (ends_worker(lost) || !lost.has_date()) continue;
      lose_for_a_while(lost,
                       date + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(lost.at_s)));
    }
  }
  for (const LostWorker& lost : faults_.lost_workers) {
    if (lost.step != step || worker != (ends_worker(lost) ? lost.worker : 0)) continue;
    if (ends_worker(lost)) lose(lost);
    set_lost(lost, true);
    lose_for_a_while(lost, date);
  }
  check(worker, now);
}

void FaultInjector::check(int worker, Nanoseconds now) const {
  for (const LostWorker& lost : faults_.lost_workers) {
    if (ends_worker(lost) && lost.has_date() && lost.worker == worker && lost.at_s <= seconds_of(now)) lose(lost);
  }
}

void FaultInjector::note_use(int worker) {
  count_use(worker);
  throw_if_lost(worker);
}

// Whoever goes on after the loss that ends the run gets its error again.
void FaultInjector::count_use(int worker) {
  const std::int64_t use = uses_[static_cast<std::size_t>(worker)].fetch_add(1);
  for (const LostWorker& lost : faults_.lost_workers) {
    if (!lost.call || lost.worker != worker || *lost.call > use) continue;
    if (ends_worker(lost)) lose(lost);
    if (*lost.call < use) continue;
    set_lost(lost, true);
    lose_for_a_while(lost, Clock::now());
  }
}

double FaultInjector::slowdown_of(int worker, const DeviceId& device, Nanoseconds now, int step) const {
  const double date_s = seconds_of(now);
  if (date_s < 0) return 1;
  const WorkerSpec& spec = workers_[static_cast<std::size_t>(worker)];
  const bool computes = device.type == spec.device_type && device.index < spec.device_count;
  return tandem::slowdown_of(faults_, worker, computes ? std::optional(device.index) : std::nullopt, date_s, step);
}

double FaultInjector::seconds_of(Nanoseconds now) const {
  const Nanoseconds begin = begin_.load();
  return begin == kNotBegun ? -1 : static_cast<double>(now - begin) * 1e-9;
}

void FaultInjector::lose(const LostWorker& lost) const {
  if (kill_) kill_();
  has_ended_run_.store(true);
  std::rethrow_exception(lost_worker_error(lost, workers_[static_cast<std::size_t>(lost.worker)].text()));
}

void FaultInjector::lose_for_a_while(const LostWorker& lost, Clock::time_point date) {
  const std::lock_guard lock(mutex_);
  changes_.emplace(date, Change{&lost, true});
  if (std::isfinite(lost.back_after_s)) {
    const std::chrono::duration<double> after(lost.back_after_s);
    changes_.emplace(date + std::chrono::duration_cast<Clock::duration>(after), Change{&lost, false});
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { change_workers(); });
  changed_.notify_all();
}

void FaultInjector::change_workers() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (changes_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto next = changes_.begin();
    if (next->first > Clock::now()) {
      changed_.wait_until(lock, next->first);
      continue;
    }
    const Change change = next->second;
    changes_.erase(next);
    lock.unlock();
    set_lost(*change.lost, change.is_lost);
    lock.lock();
  }
}

void FaultInjector::set_lost(const LostWorker& lost, bool is_lost) {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost == lost_.contains(lost.worker)) return;
    if (is_lost) {
      lost_.emplace(lost.worker, lost_worker_error(lost, workers_[static_cast<std::size_t>(lost.worker)].text()));
      ++losses_[lost.worker];
    } else {
      lost_.erase(lost.worker);
    }
  }
  notify();
}

void FaultInjector::lose_process(int worker) {
  {
    const std::lock_guard lock(mutex_);
    if (!gone_.insert(worker).second) return;
    ++losses_[worker];
  }
  notify();
}

void FaultInjector::notify() {
  std::vector<std::shared_ptr<ThreadMonitor>> watchers;
  {
    const std::lock_guard lock(mutex_);
    watchers = watchers_;
  }
  for (const auto& watcher : watchers) watcher->notify_all_from_outside();
}

bool FaultInjector::is_lost(int worker) const {
  const std::lock_guard lock(mutex_);
  return lost_.contains(worker) || gone_.contains(worker);
}

int FaultInjector::losses(int worker) const {
  const std::lock_guard lock(mutex_);
  const auto count = losses_.find(worker);
  return count == losses_.end() ? 0 : count->second;
}

void FaultInjector::throw_if_lost(int worker) const {
  const std::lock_guard lock(mutex_);
  const auto lost = lost_.find(worker);
  if (lost == lost_.end()) return;
  std::rethrow_exception(lost->second);
}

void FaultInjector::watch(std::shared_ptr<ThreadMonitor> monitor) {
  const std::lock_guard lock(mutex_);
  watchers_.push_back(std::move(monitor));
}

}  // namespace tandem::threads
