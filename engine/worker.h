// One process of the job, as strategy code sees it: its devices, its clock, its tasks, and what it shares with others.
#pragma once

#include <span>
#include <string>

#include "engine/communicator.h"
#include "engine/device.h"
#include "engine/shared_state.h"
#include "engine/task.h"
#include "engine/timeline.h"

namespace tandem {

struct Capabilities;

// Describes one process of the job: the machine of the topology it runs on, and its logical devices there. When there
// are more logical devices than physical ones, several share one (as TensorFlow's logical devices do): device i of type
// gpu is on GPU i mod (GPUs of the machine). Real engines use topology_worker only for figures.
struct WorkerSpec {
  std::string job = "worker";
  int task = 0;
  int topology_worker = 0;
  DeviceType device_type = DeviceType::cpu;
  int device_count = 1;

  std::string text() const { return "/job:" + job + "/task:" + std::to_string(task); }
};

class Worker {
 public:
  virtual ~Worker() = default;
  virtual int index() const = 0;  // among all workers of all jobs
  // Describes every worker of the job, by index.
  virtual std::span<const WorkerSpec> cluster() const = 0;
  int count() const { return static_cast<int>(cluster().size()); }
  const std::string& job() const { return own().job; }  // "worker", "ps", "chief"; "localhost" without a cluster
  int task() const { return own().task; }               // within its job
  virtual const Capabilities& capabilities() const = 0;

  // Return the compute devices of this worker in index order, and its CPU:0, whose tensors the host may read. Where the
  // compute devices are CPUs, cpu() is the first of them.
  virtual std::span<Device* const> devices() const = 0;
  virtual Device& cpu() = 0;
  // Whether the program is to give work to this one of its devices. Where it declared some of them alike
  // (EngineOptions::alike_devices), the first may represent the others, which are then left out: communicators do not
  // count them among the local devices.
  virtual bool runs(const Device& /*device*/) const { return true; }
  // Returns a device of this worker or, where Capabilities::remote_devices, of any other. Throws UnavailableError
  // naming the device and the known ones.
  virtual Device& device(const DeviceId& id) = 0;

  // What the workers of the run share by name.
  virtual SharedState& shared() = 0;

  // Blocks until the job ends: until the program of every worker has ended or waits here, too. Others may use this
  // worker's devices meanwhile. Afterwards the program uses nothing of other workers. Throws when the run fails.
  virtual void await_end_of_job() = 0;

  // Whether a worker is lost while the run goes on, and not back: see LostWorker.
  virtual bool is_lost(int /*worker*/) const { return false; }
  // How often it was lost so far.
  virtual int losses(int /*worker*/) const { return 0; }
  // Notifies the monitor, from now on, whenever a worker is lost or comes back.
  virtual void watch_workers(std::shared_ptr<Monitor> /*monitor*/) {}  // NOLINT(performance-unnecessary-value-param)

  // Reads this world's clock. Code above the engine reads no other.
  virtual Nanoseconds now() = 0;

  // How this worker does several things at the same time.
  virtual Tasks& tasks() = 0;

  // Returns the group of these devices, in which rank i is devices[i]; the same object for the same list. Throws
  // UsageError for an empty list or a device named twice.
  virtual Communicator& communicator(std::span<const DeviceId> devices) = 0;

  // Says that the calling task has taken this much from a dataset, in host memory. Models of machines let the time pass
  // that a host needs for it; on a real one it has passed.
  virtual void took_input(std::int64_t /*elements*/, std::int64_t /*bytes*/) {}

  // Delimit a step: everything issued between the two belongs to it. end_step() waits for all of this worker's devices
  // and leaves one step record. Steps do not nest.
  virtual void begin_step(int step) = 0;
  virtual void end_step() = 0;

 private:
  const WorkerSpec& own() const { return cluster()[static_cast<std::size_t>(index())]; }
};

}  // namespace tandem
