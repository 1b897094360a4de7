// tf.distribute's CentralStorageStrategy: variables on one device of the worker, replicas on all of them.
#pragma once

#include <vector>

#include "strategies/base/strategy.h"

namespace tandem {

// Replicas on all compute devices in step, variables on the parameter device: by default the only compute device, else
// CPU:0.
class CentralStorageStrategy final : public Strategy {
 public:
  explicit CentralStorageStrategy(Worker& worker, std::vector<Device*> compute_devices = {},
                                  Device* parameter_device = nullptr);
};

}  // namespace tandem
