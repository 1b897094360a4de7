#include "engine/threads/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>

#include "engine/threads/deadlock_watch.h"
#include "engine/threads/thread_monitor.h"

namespace tandem::threads {

Run::Run(const Capabilities& capabilities, const EngineOptions& options, std::shared_ptr<BlockPool> memory,
         Machine& machine)
    : capabilities_(capabilities),
      deadlock_timeout_s_(options.deadlock_timeout_s),
      specs_(options.workers),
      machine_(machine),
      context_(std::move(memory), options.records),
      neighbours_(machine.neighbours()),
      shared_(std::make_unique<ThreadMonitor>(context_.control)),
      pool_(context_.control) {
  if (machine.computes_on_cores()) context_.control.cores().limit();
  if (neighbours_ != nullptr) context_.remote_memory = &neighbours_->memory();
  if (options.faults) {
    std::function<void()> kill;
    if (neighbours_ != nullptr) kill = [] { std::raise(SIGKILL); };
    context_.faults = std::make_unique<FaultInjector>(*options.faults, specs_, std::move(kill));
  }
  add_workers(options.workers);
}

// Every worker has a CPU:0, whatever it computes on.
void Run::add_workers(const std::vector<WorkerSpec>& specs) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const int index = static_cast<int>(i);
    const WorkerSpec& spec = specs[i];
    ThreadWorker* worker = nullptr;
    if (neighbours_ == nullptr || neighbours_->is_here(index)) {
      worker = workers_.emplace_back(std::make_unique<ThreadWorker>(*this, index)).get();
    }
    add_devices(spec, index, worker);
  }
}

// `worker` is null where another process has it.
void Run::add_devices(const WorkerSpec& spec, int index, ThreadWorker* worker) {
  const auto add = [&](DeviceType type, int i, bool is_compute_device) {
    if (worker != nullptr) {
      add_device(*worker, type, i, is_compute_device);
    } else {
      add_remote_device({spec.job, spec.task, type, i}, index);
    }
  };
  const bool computes_on_cpus = spec.device_type == DeviceType::cpu;
  const int cpus = computes_on_cpus ? std::max(1, spec.device_count) : 1;
  for (int i = 0; i < cpus; ++i) add(DeviceType::cpu, i, computes_on_cpus && i < spec.device_count);
  if (computes_on_cpus) return;
  for (int i = 0; i < spec.device_count; ++i) add(spec.device_type, i, true);
}

void Run::add_remote_device(DeviceId id, int worker) {
  const int index = static_cast<int>(timeline_devices_.size());
  RemoteDevice& device =
      *remote_devices_.emplace_back(machine_.make_remote_device(context_, std::move(id), index, worker));
  devices_.emplace(device.id(), &device);
  timeline_devices_.push_back({.name = device.id().text(), .worker = worker});
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
  if (neighbours_ != nullptr) {
    neighbours_->begin(context_.control, [this](int worker) {
      if (context_.faults) context_.faults->lose_process(worker);
    });
  }
  {
    const DeadlockWatch watch(context_.control, deadlock_timeout_s_, neighbours_);
    run_programs(program);
    for (const auto& worker : workers_) worker->finish(timeline);
  }
  std::exception_ptr error = failure();
  if (neighbours_ != nullptr) error = neighbours_->end(error);
  if (error) std::rethrow_exception(error);
  sort_records(timeline.records);
  return timeline;
}

// Programs that wait for the end of the job go on when no other is left in any process.
void Run::run_programs(const Program& program) {
  std::vector<Job> jobs(workers_.size());
  start_programs(program, jobs);
  {
    std::unique_lock lock(ending_mutex_);
    ended_.wait(lock, [this] { return working_.empty(); });
  }
  if (neighbours_ != nullptr) {
    neighbours_->await_programs();
    end_job();
    neighbours_->note_end_of_job();
  }
  std::unique_lock lock(ending_mutex_);
  ended_.wait(lock, [this] { return programs_running_ == 0; });
}

void Run::start_programs(const Program& program, std::vector<Job>& jobs) {
  const std::lock_guard lock(ending_mutex_);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ThreadWorker& worker = *workers_[i];
    jobs[i] = {.name = fmt::format("worker {}", worker.index()),
               .worker = &worker,
               .run = [this, &program, &worker] { run_program(program, worker); },
               .ended = [this, &worker] { note_end_of_program(worker); }};
    try {
      pool_.start(jobs[i]);
      ++programs_running_;
      working_.insert(&worker);
    } catch (...) {
      first_error_ = std::current_exception();
      context_.control.stop();
      if (neighbours_ != nullptr) neighbours_->fail(first_error_);
      break;
    }
  }
}

void Run::note_end_of_program(const ThreadWorker& worker) {
  const std::lock_guard lock(ending_mutex_);
  --programs_running_;
  note_end_of_work(worker);
  ended_.notify_one();
}

// Where this process is alone, the last program to end wakes the others, so that they never seem to wait for nothing.
void Run::note_end_of_work(const ThreadWorker& worker) {
  if (working_.erase(&worker) == 0 || !working_.empty()) return;
  if (neighbours_ == nullptr) end_job();
  ended_.notify_one();
}

void Run::end_job() {
  has_job_ended_.store(true);
  joined_.wake_all();
}

// Like the end of a program, after all that it has issued.
void Run::await_end_of_job(ThreadWorker& worker) {
  class JobEnd final : public Wait {
   public:
    explicit JobEnd(const std::atomic<bool>& has_come) : has_come_(has_come) {}
    bool is_over() const override { return has_come_.load(); }
    std::string text() const override { return "the other programs of the job to end"; }

   private:
    const std::atomic<bool>& has_come_;
  };
  try {
    worker.synchronize_devices();
  } catch (const UnavailableError&) {
    if (!worker.is_lost(worker.index())) throw;
  }
  if (neighbours_ != nullptr) neighbours_->flush();
  {
    const std::lock_guard lock(ending_mutex_);
    note_end_of_work(worker);
  }
  context_.control.wait_as_task(JobEnd(has_job_ended_), &joined_);
}

// Also waits for work that the program has issued but not waited for, because it is part of the run. The run goes on
// without a worker that is lost for a while.
void Run::run_program(const Program& program, ThreadWorker& worker) {
  try {
    program(worker);
    worker.synchronize_devices();
    if (neighbours_ != nullptr) neighbours_->flush();
  } catch (const UnavailableError&) {
    if (!worker.is_lost(worker.index())) fail(std::current_exception());
  } catch (const RunStopped&) {  // the reason is known already
    if (neighbours_ != nullptr) neighbours_->fail(nullptr);
  } catch (...) {
    fail(std::current_exception());
  }
}

// If there are other processes, all are stopped together, after any collective that they have begun is complete.
void Run::fail(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(ending_mutex_);
    if (!first_error_) first_error_ = error;
  }
  if (neighbours_ != nullptr) return neighbours_->fail(error);
  if (context_.faults && context_.faults->has_ended_run()) return context_.control.stop_for(error);
  context_.control.stop();
}

std::exception_ptr Run::failure() const {
  try {
    throw_if_failed();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void Run::throw_if_failed() const {
  if (first_error_) std::rethrow_exception(first_error_);
  if (context_.control.is_stopped()) context_.control.throw_stopped();  // a deadlock that no task has reported
  for (const auto& worker : workers_) worker->throw_if_failed();
}

Device& Run::device(const DeviceId& id) {
  Device& found = member(id);
  if (capabilities_.remote_devices || dynamic_cast<const RemoteDevice*>(&found) == nullptr) return found;
  throw UnavailableError(fmt::format("{} is in another process, which engine '{}' reaches by collectives only",
                                     id.text(), capabilities_.engine));
}

Device& Run::member(const DeviceId& id) {
  if (const auto found = devices_.find(id); found != devices_.end()) return *found->second;
  std::vector<std::string> known;
  for (const TimelineDevice& device : timeline_devices_) known.push_back(device.name);
  throw UnavailableError(fmt::format("no device {} (known: {})", id.text(), fmt::join(known, ", ")));
}

std::shared_ptr<void> Run::shared(std::string_view name, const SharedState::Factory& make) {
  if (neighbours_ != nullptr) {
    throw UnavailableError(fmt::format("'{}' cannot be shared: the workers of engine '{}' are several processes", name,
                                       capabilities_.engine));
  }
  return shared_.get(name, make);
}

std::shared_ptr<void> Run::kept(std::string_view name, const SharedState::Factory& make) {
  return shared_.get(name, make);
}

std::shared_ptr<SharedTensor> Run::shared_tensor(SharedInProcess& state, std::string_view name,
                                                 const SharedState::TensorFactory& make) {
  return neighbours_ == nullptr ? state.SharedInProcess::tensor(name, make) : neighbours_->shared_tensor(name, make);
}

std::shared_ptr<Mailbox> Run::mailbox(SharedInProcess& state, int owner, std::string_view name) {
  if (neighbours_ == nullptr) return state.SharedInProcess::mailbox(owner, name);
  TANDEM_REQUIRE(owner >= 0 && owner < worker_count(),
                 fmt::format("a mailbox of worker {} of {}", owner, worker_count()));
  return neighbours_->mailbox(owner, name);
}

std::shared_ptr<Group> Run::group(std::span<const DeviceId> devices) {
  const std::vector<DeviceId> key(devices.begin(), devices.end());
  check_group(devices);
  const std::lock_guard lock(groups_mutex_);
  std::shared_ptr<Group>& group = groups_[key];
  if (!group) {
    std::vector<Device*> members;
    for (const DeviceId& id : key) members.push_back(&member(id));
    auto executor = machine_.make_collective_executor(members);
    group = std::make_shared<Group>(context_, std::move(members), std::move(executor));
  }
  return group;
}

}  // namespace tandem::threads
