// One worker of a cpu run.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/threads/local_device.h"
#include "engine/threads/task_pool.h"
#include "engine/threads/thread_communicator.h"
#include "engine/worker.h"

namespace tandem::threads {

// What the workers of a run find each other's devices and groups in.
class Cluster {
 public:
  virtual int worker_count() const = 0;
  virtual std::span<const WorkerSpec> specs() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual RunContext& context() = 0;
  virtual TaskPool& pool() = 0;
  virtual Device& device(const DeviceId& id) = 0;  // throws UnavailableError
  virtual std::shared_ptr<void> shared(std::string_view name, const Worker::SharedFactory& make) = 0;
  // One group for each list of devices. Throws Error for a list with a device twice, or none.
  virtual std::shared_ptr<Group> group(std::span<const DeviceId> devices) = 0;

 protected:
  ~Cluster() = default;
};

class ThreadWorker final : public Worker {
 public:
  ThreadWorker(Cluster& cluster, int index, std::string job, int task);

  int index() const override { return state_.index(); }
  int count() const override { return cluster_.worker_count(); }
  const std::string& job() const override { return job_; }
  int task() const override { return task_; }
  std::span<const WorkerSpec> cluster() const override { return cluster_.specs(); }
  std::shared_ptr<void> shared(std::string_view name, const SharedFactory& make) override {
    return cluster_.shared(name, make);
  }
  const Capabilities& capabilities() const override { return cluster_.capabilities(); }
  std::span<Device* const> devices() const override { return devices_; }
  Device& cpu() override { return *owned_devices_.front(); }
  Device& device(const DeviceId& id) override { return cluster_.device(id); }
  Nanoseconds now() override { return cluster_.context().now(); }
  void run_concurrently(int n, const std::function<void(int)>& function) override;
  void run_in_turn(int n, const std::function<void(int)>& function) override;
  std::unique_ptr<Monitor> make_monitor() override;
  Communicator& communicator(std::span<const DeviceId> devices) override;
  void begin_step(int step) override;
  void end_step() override;

  int step() const { return state_.step(); }

  WorkerState& state() { return state_; }
  // A compute device, or only the host's; CPU:0 comes first.
  void add_device(std::unique_ptr<LocalDevice> device, bool is_compute_device);
  void synchronize_devices();
  // Ends the devices' threads and hands over everything this worker recorded.
  void finish(std::vector<Record>& records);
  void throw_if_failed() const { state_.throw_if_failed(); }

 private:
  Cluster& cluster_;
  const std::string job_;
  const int task_;
  WorkerState state_;
  std::vector<std::unique_ptr<LocalDevice>> owned_devices_;
  std::vector<Device*> devices_;
  Nanoseconds step_start_ns_ = 0;
  std::vector<Record> steps_;
  std::mutex mutex_;  // of communicators_
  std::map<std::vector<DeviceId>, std::unique_ptr<ThreadCommunicator>> communicators_;
};

}  // namespace tandem::threads
