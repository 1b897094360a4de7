// What a run of threads needs from its devices, so that other engines run on its workers, tasks and groups with
// devices of their own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/device.h"
#include "engine/threads/collective_call.h"
#include "engine/threads/run_context.h"

namespace tandem::threads {

class LocalStream : public Stream {
 public:
  // This stream's part of a collective.
  virtual void join(std::shared_ptr<CollectiveCall> call, int rank, std::optional<double> limit_s) = 0;
};

class LocalDevice : public Device {
 public:
  // Ends the streams' threads and hands over what they recorded.
  virtual void finish(std::vector<Record>& records) = 0;
};

// Makes the devices of a run, and what performs their collectives. Outlives the run.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::unique_ptr<LocalDevice> make_device(RunContext& context, WorkerState& worker, DeviceId id,
                                                   int index) = 0;
  // Null: the ranks' streams perform them together in host memory. Throws Error for devices that form no group.
  virtual std::shared_ptr<CollectivePerformer> make_performer(const std::vector<Device*>& devices) = 0;
};

}  // namespace tandem::threads
