// tf.distribute.MirroredStrategy and OneDeviceStrategy: the whole model on every device, in step.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tandem {

// One replica on each of the worker's devices; variables are mirrored on all of them.
class MirroredStrategy final : public Strategy {
 public:
  // `devices` are this worker's, at least one (ValueError). `cross_device_ops`: see make_cross_device_ops.
  MirroredStrategy(Worker& worker, std::vector<Device*> devices, std::string_view cross_device_ops = "auto",
                   Packing packing = {});
};

// One replica on one device; every call is a direct one.
class OneDeviceStrategy final : public Strategy {
 public:
  OneDeviceStrategy(Worker& worker, Device& device);
};

}  // namespace tandem
