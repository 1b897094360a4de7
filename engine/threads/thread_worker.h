// One worker of a run of threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/shared_objects.h"
#include "engine/threads/local_device.h"
#include "engine/threads/task_pool.h"
#include "engine/threads/thread_communicator.h"
#include "engine/worker.h"

namespace tandem::threads {

class Run;

class ThreadWorker final : public Worker, public SharedInProcess, public Tasks {
 public:
  ThreadWorker(Run& run, int index);

  int index() const override { return state_.index(); }
  std::span<const WorkerSpec> cluster() const override;
  SharedState& shared() override { return *this; }
  std::shared_ptr<void> object(std::string_view name, const Factory& make) override;
  std::shared_ptr<void> kept(std::string_view name, const Factory& make) override;
  std::shared_ptr<SharedTensor> tensor(std::string_view name, const TensorFactory& make) override;
  std::shared_ptr<Mailbox> mailbox(int owner, std::string_view name) override;
  void await_end_of_job() override;
  bool is_lost(int worker) const override;
  int losses(int worker) const override;
  void watch_workers(std::shared_ptr<Monitor> monitor) override;
  const Capabilities& capabilities() const override;
  std::span<Device* const> devices() const override { return devices_; }
  Device& cpu() override { return *owned_devices_.front(); }
  Device& device(const DeviceId& id) override;
  Nanoseconds now() override;
  Tasks& tasks() override { return *this; }
  void run_concurrently(int n, const std::function<void(int)>& function) override;
  void run_in_turn(int n, const std::function<void(int)>& function) override;
  std::unique_ptr<BackgroundTask> start(std::string_view name, std::function<void()> function) override;
  std::unique_ptr<Monitor> make_monitor() override;
  Communicator& communicator(std::span<const DeviceId> devices) override;
  void begin_step(int step) override;
  void end_step() override;

  int step() const { return state_.step(); }

  WorkerState& state() { return state_; }
  // Adds a device, CPU:0 first. One that is no compute device is reached through cpu() only.
  void add_device(std::unique_ptr<LocalDevice> device, bool is_compute_device);
  void synchronize_devices();
  // Ends the devices' threads and adds everything this worker recorded to the timeline.
  void finish(Timeline& timeline);
  void throw_if_failed() const { state_.throw_if_failed(); }

 private:
  Run& run_;
  WorkerState state_;
  std::vector<std::unique_ptr<LocalDevice>> owned_devices_;
  std::vector<Device*> devices_;
  Nanoseconds step_start_ns_ = 0;
  std::vector<Record> steps_;
  std::mutex mutex_;  // guards communicators_
  std::map<std::vector<DeviceId>, std::unique_ptr<ThreadCommunicator>> communicators_;
};

}  // namespace tandem::threads
