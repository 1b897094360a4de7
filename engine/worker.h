// One process of the job, as strategy code sees it: its devices, its clock, its way to run replicas at once.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/communicator.h"
#include "engine/device.h"
#include "engine/task.h"
#include "engine/timeline.h"

namespace tandem {

struct Capabilities;

class Worker {
 public:
  virtual ~Worker() = default;
  virtual int index() const = 0;  // among all workers of all jobs
  virtual int count() const = 0;
  virtual const std::string& job() const = 0;  // "worker", "ps", "chief"; "localhost" without a cluster
  virtual int task() const = 0;                // within its job
  virtual const Capabilities& capabilities() const = 0;

  // The compute devices of this worker in index order, and its CPU:0, whose tensors the host may read.
  // Where the compute devices are CPUs, cpu() is the first of them.
  virtual std::span<Device* const> devices() const = 0;
  virtual Device& cpu() = 0;
  // Any device of the cluster: this worker's always, others' where Capabilities::remote_devices.
  // Throws UnavailableError naming the device and the known ones.
  virtual Device& device(const DeviceId& id) = 0;

  // This world's clock. Nobody above the engine reads another one.
  virtual Nanoseconds now() = 0;

  // Calls function(0) ... function(n - 1), each in a task of its own, and returns when all have. The first
  // exception (lowest index) is rethrown after all have ended. Tasks are named "<caller> replica <i>".
  virtual void run_concurrently(int n, const std::function<void(int)>& function) = 0;
  virtual std::unique_ptr<Monitor> make_monitor() = 0;

  // The group of these devices, in this order (rank i is devices[i]). The same object for the same list.
  virtual Communicator& communicator(std::span<const DeviceId> devices) = 0;

  // Everything issued between the two belongs to this step; end_step() waits for all of this worker's devices
  // and leaves one step record.
  virtual void begin_step(int step) = 0;
  virtual void end_step() = 0;
};

}  // namespace tandem
