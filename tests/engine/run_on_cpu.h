// Opens cpu engines for tests.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
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

inline double seconds_of(const std::function<void()>& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Waits on a host thread until a condition set by another one holds; false after ten seconds.
inline bool becomes_true(const std::atomic<bool>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition.load() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return condition.load();
}

}  // namespace tandem
