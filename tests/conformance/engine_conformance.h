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

// Puts values on a device, the way strategies must: through the worker's CPU.
inline Tensor put(Worker& worker, Device& device, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor host = worker.cpu().allocate(DType::f32, {count});
  std::copy(values.begin(), values.end(), host.values<float>().begin());
  Tensor tensor = device.allocate(DType::f32, {count});
  device.compute_stream().copy(tensor, host, Category::input);
  return tensor;
}

inline std::vector<float> get(Worker& worker, const Tensor& tensor, int stream = kComputeStream) {
  const Tensor host = worker.cpu().allocate(tensor.dtype(), tensor.shape());
  tensor.device().stream(stream).copy(host, tensor, Category::other);
  tensor.device().stream(stream).synchronize();
  const std::span<float> values = host.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace tandem
