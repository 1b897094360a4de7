// tf.distribute.OneDeviceStrategy: one replica on one device.
#pragma once

#include "strategies/base/strategy.h"

namespace tandem {

// One replica on one device; every call is a direct one.
class OneDeviceStrategy final : public Strategy {
 public:
  OneDeviceStrategy(Worker& worker, Device& device);
};

}  // namespace tandem
