#include "engine/threads/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "engine/threads/deadlock_watch.h"

namespace tandem::threads {

Run::Run(const Capabilities& capabilities, const EngineOptions& options, std::shared_ptr<BlockPool> memory,
         Machine& machine)
    : capabilities_(capabilities),
      deadlock_timeout_s_(options.deadlock_timeout_s),
      specs_(options.workers),
      machine_(machine),
      context_(std::move(memory)),
      pool_(context_.control) {
  add_workers(options.workers);
}

// CPU:0 is every worker's, whatever it computes on.
void Run::add_workers(const std::vector<WorkerSpec>& specs) {
  for (const WorkerSpec& spec : specs) {
    const int index = static_cast<int>(workers_.size());
    ThreadWorker& worker = *workers_.emplace_back(std::make_unique<ThreadWorker>(*this, index, spec.job, spec.task));
    const bool computes_on_cpus = spec.device_type == DeviceType::cpu;
    const int cpus = computes_on_cpus ? std::max(1, spec.device_count) : 1;
    for (int i = 0; i < cpus; ++i) add_device(worker, DeviceType::cpu, i, computes_on_cpus && i < spec.device_count);
    if (computes_on_cpus) continue;
    for (int i = 0; i < spec.device_count; ++i) add_device(worker, spec.device_type, i, true);
  }
}

void Run::add_device(ThreadWorker& worker, DeviceType type, int index, bool is_compute_device) {
  auto device = machine_.make_device(context_, worker.state(), {worker.job(), worker.task(), type, index},
                                     static_cast<int>(timeline_devices_.size()));
  devices_.emplace(device->id(), device.get());
  timeline_devices_.push_back({.name = device->id().text(), .worker = worker.index()});
  worker.add_device(std::move(device), is_compute_device);
}

Timeline Run::run(const Program& program) {
  Timeline timeline{
      .engine = capabilities_.engine, .devices = timeline_devices_, .records = {}, .settings = {}, .notes = {}};
  {
    const DeadlockWatch watch(context_.control, deadlock_timeout_s_);
    run_programs(program);
    for (const auto& worker : workers_) worker->finish(timeline.records);
  }
  throw_if_failed();
  std::stable_sort(timeline.records.begin(), timeline.records.end(), [](const Record& a, const Record& b) {
    return std::tie(a.start_ns, a.worker, a.device, a.stream) < std::tie(b.start_ns, b.worker, b.device, b.stream);
  });
  return timeline;
}

void Run::run_programs(const Program& program) {
  std::vector<Job> jobs(workers_.size());
  std::unique_lock lock(ending_mutex_);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ThreadWorker& worker = *workers_[i];
    jobs[i] = {.name = fmt::format("worker {}", i),
               .worker = &worker,
               .run = [this, &program, &worker] { run_program(program, worker); },
               .ended =
                   [this] {
                     const std::lock_guard ending(ending_mutex_);
                     if (--programs_running_ == 0) ended_.notify_one();
                   }};
    try {
      pool_.start(jobs[i]);
      ++programs_running_;
    } catch (...) {
      first_error_ = std::current_exception();
      context_.control.stop();
      break;
    }
  }
  ended_.wait(lock, [this] { return programs_running_ == 0; });
}

// Work that the program has left behind is part of the run.
void Run::run_program(const Program& program, ThreadWorker& worker) {
  try {
    program(worker);
    worker.synchronize_devices();
  } catch (const RunStopped&) {  // what stopped it is known already
  } catch (...) {
    fail(std::current_exception());
  }
}

void Run::fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(ending_mutex_);
    if (!first_error_) first_error_ = std::move(error);
  }
  context_.control.stop();
}

void Run::throw_if_failed() const {
  if (first_error_) std::rethrow_exception(first_error_);
  if (context_.control.is_stopped()) context_.control.throw_stopped();  // a deadlock that no task has reported
  for (const auto& worker : workers_) worker->throw_if_failed();
}

Device& Run::device(const DeviceId& id) {
  if (const auto found = devices_.find(id); found != devices_.end()) return *found->second;
  std::vector<std::string> known;
  for (const TimelineDevice& device : timeline_devices_) known.push_back(device.name);
  throw UnavailableError(fmt::format("no device {} (known: {})", id.text(), fmt::join(known, ", ")));
}

std::shared_ptr<void> Run::shared(std::string_view name, const Worker::SharedFactory& make) {
  const std::lock_guard lock(shared_mutex_);
  const auto found = shared_.find(name);
  return found != shared_.end() ? found->second : shared_.emplace(name, make()).first->second;
}

std::shared_ptr<Group> Run::group(std::span<const DeviceId> devices) {
  const std::vector<DeviceId> key(devices.begin(), devices.end());
  if (key.empty()) throw Error("a communicator needs at least one device");
  if (const std::set<DeviceId> distinct(key.begin(), key.end()); distinct.size() != key.size()) {
    throw Error("a communicator has each device once");
  }
  const std::lock_guard lock(groups_mutex_);
  std::shared_ptr<Group>& group = groups_[key];
  if (!group) {
    std::vector<Device*> members;
    for (const DeviceId& id : key) members.push_back(&device(id));
    auto performer = machine_.make_performer(members);
    group = std::make_shared<Group>(context_, std::move(members), std::move(performer));
  }
  return group;
}

}  // namespace tandem::threads
