// What the engine half of the suite shares: the fixture that runs a program in a world, and shorthands.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/conformance/worlds.h"

namespace tandem {

class EveryEngine : public InEveryWorld {
 protected:
  Timeline run(int workers, int devices, const Program& program) {
    return open_world(GetParam(), workers, devices)->run(program);
  }
};

// Compute devices of all workers: every worker has as many as this one.
inline std::vector<DeviceId> all_devices(Worker& worker) {
  std::vector<DeviceId> ids;
  for (int task = 0; task < worker.count(); ++task) {
    for (Device* device : worker.devices()) {
      ids.push_back(device->id());
      ids.back().task = task;
    }
  }
  return ids;
}

inline std::vector<Stream*> streams_of(Worker& worker, int index) {
  std::vector<Stream*> streams;
  for (Device* device : worker.devices()) streams.push_back(&device->stream(index));
  return streams;
}

}  // namespace tandem
