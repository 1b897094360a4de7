// What the engine half of the suite shares: the fixture that runs a program in a world, and shorthands.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/conformance/worlds.h"

namespace tandem {

class EveryEngine : public InEveryWorld {
 protected:
  Timeline run(int workers, int devices, const Program& program) {
    return open_world(GetParam(), workers, devices)->run(program);
  }
};

// Of several processes, under mpirun, each has some of the workers and checks what these see. How many has this one?
inline int workers_here(const World& world, int workers) {
  LaunchedJob* const job = engine_info(world.engine).join == nullptr ? nullptr : engine_info(world.engine).join();
  if (job == nullptr) return workers;
  const Rank rank = job->rank();
  if (workers <= rank.count) return rank.index < workers ? 1 : 0;
  const auto first = [&](int index) { return (workers * index + rank.count - 1) / rank.count; };
  return first(rank.index + 1) - first(rank.index);
}

// The message of a run that fails. Where another process has failed, its rank and host come first.
inline testing::Matcher<const std::string&> says(const World& world, const std::string& message) {
  if (workers_here(world, 2) == 2) return message;
  return testing::AnyOf(message, testing::AllOf(testing::AnyOf(testing::StartsWith("rank "),
                                                               testing::ContainsRegex("^[a-z]+ [0-9]+ at ")),
                                                testing::EndsWith(": " + message)));
}

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
