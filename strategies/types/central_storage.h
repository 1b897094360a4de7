// tf.distribute.experimental.CentralStorageStrategy: variables on one device of the worker, replicas on all of them.
#pragma once

#include <vector>

#include "strategies/strategy/strategy.h"

namespace tandem {

// Replicas run in step on the compute devices, by default all of the worker's. Variables are on the parameter device,
// by default the only compute device, or CPU:0 where there are several.
class CentralStorageStrategy final : public Strategy {
 public:
  // On the worker whose program the calling task runs (RuntimeError outside a program).
  CentralStorageStrategy();
  explicit CentralStorageStrategy(Worker& worker, std::vector<Device*> compute_devices = {},
                                  Device* parameter_device = nullptr);
};

}  // namespace tandem
