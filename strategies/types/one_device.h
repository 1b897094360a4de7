// tf.distribute.OneDeviceStrategy: one replica on one device.
#pragma once

#include <string>

#include "strategies/strategy/strategy.h"

namespace tandem {

// One replica on one device; reductions return the value itself.
class OneDeviceStrategy final : public Strategy {
 public:
  OneDeviceStrategy(Worker& worker, Device& device);
  // On the device of this name, "/gpu:0", of the worker whose program the calling task runs. RuntimeError outside a
  // program, ValueError for a text that names no device, UnavailableError for a device that is not there.
  explicit OneDeviceStrategy(const std::string& device);
};

}  // namespace tandem
