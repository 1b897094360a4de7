// Consecutive devices of a worker that do the same: the first device of each block runs for all of them.
//
// The device that has place k in its block is image k of the first one. Blocks are only kept where all devices of a
// block have a GPU of their own, of one model, and every worker has a machine of its own.
#pragma once

#include "engine/engine.h"

namespace tandem::sim::symmetry {

class DeviceBlocks {
 public:
  explicit DeviceBlocks(const EngineOptions& options);

  int size() const { return size_; }  // 1: every device runs
  int place_of(const DeviceId& id) const { return id.type == DeviceType::gpu ? id.index % size_ : 0; }
  void shrink();  // to the next smaller size that divides it

 private:
  int size_ = 1;
};

}  // namespace tandem::sim::symmetry
