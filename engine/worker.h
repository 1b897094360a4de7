// One process of the job, as strategy code sees it: its devices, its clock, its way to run replicas at once.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/communicator.h"
#include "engine/device.h"
#include "engine/task.h"
#include "engine/timeline.h"

namespace tandem {

struct Capabilities;

// One process of the job: which machine of the topology it runs on, and its logical devices there. Several logical
// devices share a physical one when there are more of them (TensorFlow's logical devices): device i of type gpu is
// on GPU i mod (GPUs of the machine). Real engines that are this machine use topology_worker only for figures.
struct WorkerSpec {
  std::string job = "worker";
  int task = 0;
  int topology_worker = 0;
  DeviceType device_type = DeviceType::cpu;
  int device_count = 1;
};

class Worker {
 public:
  virtual ~Worker() = default;
  virtual int index() const = 0;  // among all workers of all jobs
  virtual int count() const = 0;
  virtual const std::string& job() const = 0;  // "worker", "ps", "chief"; "localhost" without a cluster
  virtual int task() const = 0;                // within its job
  // Every worker of the job, by index: which job and task it is, and what devices it computes on.
  virtual std::span<const WorkerSpec> cluster() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  // The compute devices of this worker in index order, and its CPU:0, whose tensors the host may read.
  // Where the compute devices are CPUs, cpu() is the first of them.
  virtual std::span<Device* const> devices() const = 0;
  virtual Device& cpu() = 0;
  // Any device of the cluster: this worker's always, others' where Capabilities::remote_devices.
  // Throws UnavailableError naming the device and the known ones.
  virtual Device& device(const DeviceId& id) = 0;

  // An object that all workers of the run share: the first that asks for `name` makes it, in a task of its own; it
  // lives to the end of the run. Only where Capabilities::remote_devices. `make` must not ask for a shared object
  // itself.
  using SharedFactory = std::function<std::shared_ptr<void>()>;
  virtual std::shared_ptr<void> shared(std::string_view name, const SharedFactory& make) = 0;

  // This world's clock. Nobody above the engine reads another one.
  virtual Nanoseconds now() = 0;

  // Calls function(0) ... function(n - 1), each in a task of its own, and returns when all have. The first
  // exception (lowest index) is rethrown after all have ended. Tasks are named "<caller> replica <i>".
  virtual void run_concurrently(int n, const std::function<void(int)>& function) = 0;
  // The same for functions that advance one at a time anyway: function(i + 1) may start as late as when function(i)
  // blocks for the first time or has ended, which spares an engine of threads most of its hand-overs.
  virtual void run_in_turn(int n, const std::function<void(int)>& function) { run_concurrently(n, function); }
  virtual std::unique_ptr<Monitor> make_monitor() = 0;

  // The group of these devices, in this order (rank i is devices[i]). The same object for the same list.
  virtual Communicator& communicator(std::span<const DeviceId> devices) = 0;

  // Everything issued between the two belongs to this step; end_step() waits for all of this worker's devices
  // and leaves one step record.
  virtual void begin_step(int step) = 0;
  virtual void end_step() = 0;
};

}  // namespace tandem
