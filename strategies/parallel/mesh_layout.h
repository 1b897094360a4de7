// The devices of a job as a mesh pipeline x data x tensor, and what each of this worker's devices needs to know of it.
// Tensor-parallel devices have neighbouring ranks; data-parallel devices are further apart, pipeline stages furthest.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "strategies/parallel/device_mesh.h"
#include "strategies/parallel/group_collectives.h"
#include "strategies/parallel/pipeline_schedule.h"
#include "strategies/parallel/trainer.h"

namespace tandem {

struct MeshPlace {
  int data = 0, tensor = 0, pipeline = 0;
};
struct MeshGroups {
  GroupCollectives* data = nullptr;
  GroupCollectives* tensor = nullptr;
  // Of the devices of the pipeline. With several stages a device, gradients have a communicator of their own, in the
  // opposite order, since two devices may then exchange both in the same direction.
  Communicator* activations = nullptr;
  Communicator* gradients = nullptr;
};
struct MeshSeat {
  Device* device = nullptr;
  int rank = 0;
  MeshPlace place{};
  MeshGroups groups{};
};

class MeshLayout {
 public:
  // ValueError when the mesh needs another number of devices than the job has.
  MeshLayout(Worker& worker, const ParallelOptions& options);

  const std::vector<MeshSeat>& seats() const { return seats_; }  // one for each of this worker's devices
  // The first and the last device of the seat's pipeline, if it is one of the two and they differ; else null.
  GroupCollectives* ends_of(const MeshSeat& seat);

 private:
  GroupCollectives* group(Communicator& communicator);
  MeshGroups groups_of(int rank);

  Worker& worker_;
  ParallelOptions options_;
  DeviceMesh mesh_;
  std::map<Communicator*, std::unique_ptr<GroupCollectives>> groups_;
  std::vector<MeshSeat> seats_;
};

// A stage, in which a device computes its part of some consecutive layers.
class StageChunk {
 public:
  virtual ~StageChunk() = default;
  virtual void forward(int micro_batch) = 0;
  // The pass of the last micro-batch completes the gradients.
  virtual void backward(int micro_batch) = 0;
};

// Issues the passes of a step in their order. `chunks` are the device's stages.
void run_passes(std::span<const PipelineAction> actions, std::span<StageChunk* const> chunks);

}  // namespace tandem
