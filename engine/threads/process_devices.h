// Devices of one process, for an engine whose runs span processes and which has no devices of this kind itself.
//
// Threads: as for Machine; of a call, the thread that executes it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/threads/local_device.h"

namespace tandem::threads {

// The part of this process in the calls of a group that spans processes, where the devices communicate by themselves.
class SpanningPart {
 public:
  virtual ~SpanningPart() = default;
  // Returns what the group's first process tells all others with its vote, so that they find each other: "" once they
  // have. Only that process calls it. Throws RunError.
  virtual std::string invitation() = 0;
  // Executes this process's part of a call; `invitation` is the first process's. Every process executes the calls that
  // it has in common with another one in the same order, one at a time. Throws RunError.
  virtual void execute(const CollectiveCall& call, const std::string& invitation) = 0;
  // See CollectiveExecutor.
  virtual void abort() = 0;
};

// The operands of a call's ranks in host memory, by rank of the call. Null for ranks of other processes, and where a
// rank has no such operand (the input of a broadcast's receiver).
struct HostOperands {
  DType dtype = DType::f32;  // may be wider than the call's
  std::vector<std::byte*> inputs, outputs;
  std::vector<std::shared_ptr<void>> held;  // the memory
};

// Moves operands between devices and host memory.
class HostStaging {
 public:
  virtual ~HostStaging() = default;
  // Waits for what the streams of the ranks `here` have to do before, and reads their operands. The element type of
  // the result is one that CPUs can reduce, if the call reduces. Throws RunError.
  virtual HostOperands load(const CollectiveCall& call, const std::vector<int>& here) = 0;
  // Writes the outputs; waits until that is done. Throws RunError.
  virtual void store(const CollectiveCall& call, const HostOperands& operands) = 0;
};

// The devices of this process in one run.
class ProcessMachine : public Machine {
 public:
  // `devices` are those of the whole group; those of other processes are RemoteDevices. Each is a device of its own
  // (ProcessDevices::names()).
  virtual std::shared_ptr<SpanningPart> make_spanning_part(const std::vector<Device*>& devices) = 0;
  virtual HostStaging& staging() = 0;
};

class ProcessDevices {
 public:
  virtual ~ProcessDevices() = default;
  virtual const Capabilities& capabilities() const = 0;
  // Names the devices that this process can use, by their order. Two of a host with equal names are the same device.
  virtual std::vector<std::string> names() const = 0;
  // Logical device i of each worker is device first + i, modulo their number. Throws RunError.
  virtual std::unique_ptr<ProcessMachine> begin_run(int first) = 0;
  // Adds to `timeline` what there is to say about the devices in the run.
  virtual void end_run(ProcessMachine& machine, Timeline& timeline) = 0;
};

}  // namespace tandem::threads
