// One Engine::run of an engine whose tasks are threads: its workers, their threads, and how it ends.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/engine.h"
#include "engine/shared_objects.h"
#include "engine/threads/remote_device.h"
#include "engine/threads/thread_worker.h"

namespace tandem::threads {

class Run {
 public:
  Run(const Capabilities& capabilities, const EngineOptions& options, std::shared_ptr<BlockPool> memory,
      Machine& machine);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Runs the program on every worker and returns their records, or throws what ended the run. Called once.
  Timeline run(const Program& program);

  int worker_count() const { return static_cast<int>(specs_.size()); }
  std::span<const WorkerSpec> specs() const { return specs_; }
  const Capabilities& capabilities() const { return capabilities_; }
  RunContext& context() { return context_; }
  TaskPool& pool() { return pool_; }
  // Throws UnavailableError for one that does not exist, naming the known ones, and for one of another process.
  Device& device(const DeviceId& id);
  // See SharedState.
  std::shared_ptr<void> shared(std::string_view name, const SharedState::Factory& make);
  std::shared_ptr<void> kept(std::string_view name, const SharedState::Factory& make);
  std::shared_ptr<SharedTensor> shared_tensor(SharedInProcess& state, std::string_view name,
                                              const SharedState::TensorFactory& make);
  std::shared_ptr<Mailbox> mailbox(SharedInProcess& state, int owner, std::string_view name);
  void await_end_of_job(ThreadWorker& worker);
  // Returns the one group of these devices. Throws UsageError for an empty list or a device named twice.
  std::shared_ptr<Group> group(std::span<const DeviceId> devices);

 private:
  void add_workers(const std::vector<WorkerSpec>& specs);
  void add_devices(const WorkerSpec& spec, int index, ThreadWorker* worker);
  void add_device(ThreadWorker& worker, DeviceType type, int index, bool is_compute_device);
  void add_remote_device(DeviceId id, int worker);
  Device& member(const DeviceId& id);  // as device(), but of any process
  void run_program(const Program& program, ThreadWorker& worker);
  void run_programs(const Program& program);
  void start_programs(const Program& program, std::vector<Job>& jobs);
  void note_end_of_program(const ThreadWorker& worker);
  void note_end_of_work(const ThreadWorker& worker);
  void end_job();
  void fail(const std::exception_ptr& error);
  void throw_if_failed() const;
  std::exception_ptr failure() const;

  const Capabilities& capabilities_;
  const double deadlock_timeout_s_;
  const std::vector<WorkerSpec> specs_;
  Machine& machine_;
  RunContext context_;
  Neighbours* const neighbours_;                        // null where this process is alone
  std::vector<std::unique_ptr<ThreadWorker>> workers_;  // those of this process
  std::vector<std::unique_ptr<RemoteDevice>> remote_devices_;
  std::map<DeviceId, Device*> devices_;
  std::vector<TimelineDevice> timeline_devices_;

  std::mutex groups_mutex_;  // guards the next
  std::map<std::vector<DeviceId>, std::shared_ptr<Group>> groups_;

  SharedObjects shared_;  // freed before the devices

  std::mutex ending_mutex_;  // guards the next four
  std::condition_variable ended_;
  int programs_running_ = 0;
  std::set<const ThreadWorker*> working_;  // whose programs neither have ended nor wait for the end of the job
  std::exception_ptr first_error_;
  std::atomic<bool> has_job_ended_{false};
  WaitList joined_;  // the tasks that wait for it

  TaskPool pool_;  // declared last: its threads use everything above
};

}  // namespace tandem::threads
