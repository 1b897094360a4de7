// Opens cpu engines for tests.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/cpu/cpu_engine.h"

namespace tandem {

inline EngineOptions cpu_options(int workers, int devices) {
  EngineOptions options;
  options.workers.clear();
  for (int task = 0; task < workers; ++task) options.workers.push_back({.task = task, .device_count = devices});
  return options;
}

inline Timeline run_on_cpu(int workers, int devices, const Program& program) {
  return open_cpu_engine(cpu_options(workers, devices))->run(program);
}

// Every device of the cluster, worker by worker.
inline std::vector<DeviceId> all_devices(int workers, int devices) {
  std::vector<DeviceId> ids;
  for (int task = 0; task < workers; ++task) {
    for (int i = 0; i < devices; ++i) ids.push_back({"worker", task, DeviceType::cpu, i});
  }
  return ids;
}

// The first stream of purpose `index` of each local device.
inline std::vector<Stream*> streams_of(std::span<Device* const> devices, int index) {
  std::vector<Stream*> streams;
  for (Device* device : devices) streams.push_back(&device->stream(index));
  return streams;
}

}  // namespace tandem
