// Data, tensor and pipeline parallelism combined on a mesh of devices. An axis of size 1 switches its kind off.
// Tensor-parallel devices have neighbouring ranks; data-parallel devices are further apart, pipeline stages furthest.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "strategies/parallel/device_mesh.h"
#include "strategies/parallel/mesh_stage.h"

namespace tandem {

class MeshTrainer final : public ParallelTrainer {
 public:
  MeshTrainer(Worker& worker, LinearStack stack, const ParallelOptions& options);

  Tensor train_step(const Tensor& inputs, const Tensor& labels) override;
  int replicas() const override { return options_.data; }
  LinearTensors read_layer(int layer) override;

 private:
  GroupCollectives& group(int rank, const char* axis);
  void make_stages();

  Worker& worker_;
  LinearStack stack_;
  ParallelOptions options_;
  DeviceMesh mesh_;
  std::map<Communicator*, std::unique_ptr<GroupCollectives>> groups_;
  std::vector<std::unique_ptr<MeshStage>> stages_;  // one per local device
  std::vector<std::int64_t> loss_at_;               // where a stage's losses go; -1: it has none
  std::int64_t losses_ = 0;
};

}  // namespace tandem
