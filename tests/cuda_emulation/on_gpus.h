// What the tests here share: a machine of emulated GPUs, and programs on the cuda engine.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/engine.h"
#include "tests/cuda_emulation/emulation.h"

namespace tandem {

// One worker with so many logical devices.
inline std::unique_ptr<Engine> open_gpus(int devices) {
  EngineOptions options;
  options.workers.front().device_type = DeviceType::gpu;
  options.workers.front().device_count = devices;
  return open_engine("cuda", std::move(options));
}

inline Timeline run_on_gpus(int devices, const Program& program) {
  return open_gpus(devices)->run(program);
}

inline std::vector<DeviceId> ids_of(const Worker& worker) {
  std::vector<DeviceId> ids;
  for (const Device* device : worker.devices()) ids.push_back(device->id());
  return ids;
}

inline std::vector<Stream*> compute_streams(const Worker& worker) {
  std::vector<Stream*> streams;
  for (Device* device : worker.devices()) streams.push_back(&device->compute_stream());
  return streams;
}

// A float32 on every device, all of one value.
inline std::vector<Tensor> filled(const Worker& worker, std::int64_t count, double value) {
  std::vector<Tensor> tensors;
  for (Device* device : worker.devices()) {
    tensors.push_back(device->allocate(DType::f32, {count}));
    device->compute_stream().launch(op::fill(tensors.back(), value));
  }
  return tensors;
}

}  // namespace tandem
