// One process of the job, as strategy code sees it: its devices, its clock, its way to run replicas concurrently.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/communicator.h"
#include "engine/device.h"
#include "engine/shared_tensor.h"
#include "engine/task.h"
#include "engine/timeline.h"

namespace tandem {

struct Capabilities;
class Mailbox;

// Describes one process of the job: the machine of the topology it runs on, and its logical devices there. When there
// are more logical devices than physical ones, several share one (as TensorFlow's logical devices do): device i of type
// gpu is on GPU i mod (GPUs of the machine). Real engines use topology_worker only for figures.
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
  // Describes every worker of the job, by index.
  virtual std::span<const WorkerSpec> cluster() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  // Return the compute devices of this worker in index order, and its CPU:0, whose tensors the host may read. Where the
  // compute devices are CPUs, cpu() is the first of them.
  virtual std::span<Device* const> devices() const = 0;
  virtual Device& cpu() = 0;
  // Returns a device of this worker or, where Capabilities::remote_devices, of any other. Throws UnavailableError
  // naming the device and the known ones.
  virtual Device& device(const DeviceId& id) = 0;

  // Returns an object that all workers of the run share. The first task that asks for `name` calls `make`, which may
  // block like any other code of a task; others that ask for the same name wait meanwhile. When `make` throws, the
  // exception is the asker's, and the next task that asks makes the object. It lives to the end of the run. Throws
  // UnavailableError unless Capabilities::shared_objects.
  using SharedFactory = std::function<std::shared_ptr<void>()>;
  virtual std::shared_ptr<void> shared(std::string_view name, const SharedFactory& make) = 0;
  // The same for an object that is this worker's alone, on every engine.
  virtual std::shared_ptr<void> kept(std::string_view name, const SharedFactory& make);
  // The same for a tensor, on any device that this worker reaches, wherever Capabilities::remote_devices.
  using TensorFactory = std::function<Tensor()>;
  virtual std::shared_ptr<SharedTensor> shared_tensor(std::string_view name, const TensorFactory& make);
  // Returns the mailbox of this name of a worker, on every engine: anybody sends to it, its owner receives from it.
  // UsageError for an owner that does not exist.
  virtual std::shared_ptr<Mailbox> mailbox(int owner, std::string_view name);

  // Blocks until the job ends: until the program of every worker has ended or waits here, too. Others may use this
  // worker's devices meanwhile. Afterwards the program uses nothing of other workers. Throws when the run fails.
  virtual void await_end_of_job() = 0;

  // Reads this world's clock. Code above the engine reads no other.
  virtual Nanoseconds now() = 0;

  // Calls function(0) ... function(n - 1), each in a task of its own, and returns when all have returned. Rethrows the
  // exception of the lowest index after all have ended. Tasks are named "<caller> replica <i>".
  virtual void run_concurrently(int n, const std::function<void(int)>& function) = 0;
  // The same for functions that advance one at a time anyway: function(i + 1) may start as late as when function(i)
  // first blocks or ends, which saves engines on threads most hand-overs.
  virtual void run_in_turn(int n, const std::function<void(int)>& function) { run_concurrently(n, function); }
  // Starts `function` in a task of its own, named "<caller> <name>", and returns while it runs. The function must not
  // throw, and must end when the result's owner tells it to: the result's destructor waits for it.
  virtual std::unique_ptr<BackgroundTask> start_task(std::string_view name, std::function<void()> function) = 0;
  virtual std::unique_ptr<Monitor> make_monitor() = 0;

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
};

}  // namespace tandem
