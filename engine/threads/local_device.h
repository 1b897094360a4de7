// What a run needs from the devices of its engine. An engine with devices of its own implements this and shares the
// workers, tasks and groups.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/device.h"
#include "engine/threads/block_pool.h"
#include "engine/threads/collective_call.h"
#include "engine/threads/neighbours.h"
#include "engine/threads/remote_device.h"
#include "engine/threads/run_context.h"

namespace tandem::threads {

class LocalStream : public Stream {
 public:
  // Enqueues this stream's part of a collective.
  virtual void join(std::shared_ptr<CollectiveCall> call, int rank, std::optional<double> timeout_s) = 0;
  // Somebody gives work to the stream, or waits for it. Throws where the worker of its device is lost.
  virtual void note_use() const {}
};

class LocalDevice : public Device {
 public:
  std::int64_t memory_in_use_bytes() const override { return memory_use().in_use_bytes.load(); }
  std::int64_t memory_peak_bytes() const override { return memory_use().peak_bytes.load(); }
  virtual const MemoryUse& memory_use() const = 0;
  // Ends the streams' threads and appends what they recorded to `records`.
  virtual void finish(std::vector<Record>& records) = 0;
};

// Makes the devices of a run and the executors of their collectives. Outlives the run.
class Machine {
 public:
  virtual ~Machine() = default;
  // Whether the threads of its streams compute on the cores of this process.
  virtual bool computes_on_cores() const { return false; }
  virtual std::unique_ptr<LocalDevice> make_device(RunContext& context, WorkerState& worker, DeviceId id,
                                                   int index) = 0;
  // Returns null when the ranks' streams execute collectives together in host memory. Throws Error for devices that
  // cannot form a group.
  virtual std::shared_ptr<CollectiveExecutor> make_collective_executor(const std::vector<Device*>& devices) = 0;
  // Returns the other processes of the run; null where there are none.
  virtual Neighbours* neighbours() { return nullptr; }
  // Makes the object that represents a device of another process in this one.
  virtual std::unique_ptr<RemoteDevice> make_remote_device(RunContext& /*context*/, DeviceId id, int index,
                                                           int worker) {
    return std::make_unique<RemoteDevice>(std::move(id), index, worker);
  }
};

}  // namespace tandem::threads
