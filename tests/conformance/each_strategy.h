// Runs a test under each kind of strategy that keeps variables in its own way.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/one_device.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {

// On a worker with two devices.
inline void under_each_strategy_of(Worker& worker, const std::function<void(Strategy&)>& test) {
  OneDeviceStrategy one(worker, *worker.devices()[1]);
  MirroredStrategy mirrored(worker, devices_of(worker));
  CentralStorageStrategy central(worker, devices_of(worker));
  for (Strategy* strategy :
       {static_cast<Strategy*>(&one), static_cast<Strategy*>(&mirrored), static_cast<Strategy*>(&central)}) {
    SCOPED_TRACE(strategy->name());
    test(*strategy);
  }
}

}  // namespace tandem
