// tf.distribute.OneDeviceStrategy: one replica on one device.
#pragma once

#include "strategies/base/strategy.h"

namespace tandem {

// One replica on one device; reductions return the value itself.
class OneDeviceStrategy final : public Strategy {
 public:
  OneDeviceStrategy(Worker& worker, Device& device);
};

}  // namespace tandem
