// Devices arranged along named axes, one for each kind of parallelism: data, tensor, pipeline.
//
// Ranks count row by row. The last axis varies fastest, so neighbouring devices of a worker are neighbours along it:
// make it the axis that communicates most.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/worker.h"

namespace tandem {

struct MeshAxis {
  std::string name{};
  int size = 1;
};

class DeviceMesh {
 public:
  // `devices`, in rank order, may belong to any workers; every worker names the same. ValueError when the axes need
  // another number of devices, for sizes below 1, and for a name that is given twice.
  DeviceMesh(Worker& worker, std::vector<DeviceId> devices, std::vector<MeshAxis> axes);

  int device_count() const { return static_cast<int>(devices_.size()); }
  int size(std::string_view axis) const;                  // 1 for an axis that the mesh lacks
  int coordinate(int rank, std::string_view axis) const;  // 0 for an axis that the mesh lacks
  const DeviceId& device(int rank) const { return devices_.at(static_cast<std::size_t>(rank)); }

  // This worker's devices that run, in the order of their ranks, and those ranks.
  const std::vector<int>& local_ranks() const { return local_ranks_; }
  const std::vector<Device*>& local_devices() const { return local_devices_; }

  // The ranks that differ from `rank` only along `axis`, and `rank` itself, in order along the axis.
  std::vector<int> group(int rank, std::string_view axis) const;
  // The communicator of those devices. One call covers all of them that belong to this worker.
  Communicator& communicator(int rank, std::string_view axis) const;

 private:
  // The distance between ranks that are neighbours along an axis, and the axis's size; {0, 1} for an axis that the mesh
  // lacks.
  struct Step {
    int stride = 0, size = 1;
  };
  Step step_along(std::string_view axis) const;

  Worker& worker_;
  std::vector<DeviceId> devices_;
  std::vector<MeshAxis> axes_;
  std::vector<int> local_ranks_;
  std::vector<Device*> local_devices_;
};

}  // namespace tandem
