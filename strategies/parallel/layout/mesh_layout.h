// The devices of a job as a mesh pipeline x data x context x tensor, and what each of this worker's devices needs to
// know about it. Tensor-parallel devices have neighbouring ranks; those of one sequence are further apart, then
// data-parallel ones, and pipeline stages furthest, unless ParallelOptions::axis_order has these nearer than the
// devices of a sequence. Devices that divide experts are neighbours along data x context. Where only some neighbours
// along tensor divide each expert, groups of these are neighbours along data x context x tensor, and devices with the
// same place in such groups divide the experts.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "strategies/parallel/layout/device_mesh.h"
#include "strategies/parallel/layout/group_collectives.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "strategies/parallel/layout/pipeline_schedule.h"

namespace tandem {

struct MeshPlace {
  int data = 0, context = 0, tensor = 0, pipeline = 0;
};
struct MeshGroups {
  GroupCollectives* data = nullptr;  // along data x context x ways: whoever has the same parameters
  // Those of them that divide what they have, and those that have the same part: null with one group of them.
  GroupCollectives* shards = nullptr;
  GroupCollectives* copies = nullptr;
  GroupCollectives* tensor = nullptr;
  GroupCollectives* context = nullptr;
  GroupCollectives* experts = nullptr;        // those that divide the experts
  GroupCollectives* expert_tensor = nullptr;  // those that divide each expert; null where each device has whole ones
  GroupCollectives* expert_data = nullptr;    // those that have the same parts of experts
  // Communicators of the pipeline's devices. With several stages on each device, activations and gradients may go in
  // the same direction between two devices; gradients then have a communicator of their own, in the opposite order.
  Communicator* activations = nullptr;
  Communicator* gradients = nullptr;
};
struct MeshMember {
  Device* device = nullptr;
  int rank = 0;
  MeshPlace place{};
  MeshGroups groups{};
};

class MeshLayout {
 public:
  // ValueError when the mesh needs another number of devices than the job has.
  MeshLayout(Worker& worker, const ParallelOptions& options);

  const std::vector<MeshMember>& members() const { return members_; }  // one for each of this worker's devices that run
  // Returns the member with the groups of its stage number `chunk`. They differ where a stage is on two devices.
  MeshMember with_groups_of(const MeshMember& member, int chunk);
  // Returns the group of the first and the last device of the member's pipeline, if the member's is one of them and
  // they differ; else null.
  GroupCollectives* ends_of(const MeshMember& member);

 private:
  GroupCollectives* group(Communicator& communicator);
  GroupCollectives* group(const std::vector<int>& ranks);
  MeshGroups groups_of(int rank);
  GroupCollectives* parts_of_expert(int rank, GroupCollectives& tensor);
  std::vector<int> along_replicas(int rank) const;
  std::vector<int> replicas_of(int rank, int stage) const;
  std::vector<int> devices_with_experts(const std::vector<int>& replicas) const;
  int place_with_experts(int rank) const;
  std::vector<int> experts_of(int rank) const;  // the devices that divide experts with this one
  void set_groups_of_parameters(int rank, int stage, MeshGroups& groups);

  Worker& worker_;
  ParallelOptions options_;
  DeviceMesh mesh_;
  std::map<Communicator*, std::unique_ptr<GroupCollectives>> groups_;
  std::vector<MeshMember> members_;
};

}  // namespace tandem
