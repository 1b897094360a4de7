// What the strategy half of the suite shares: the fixture that runs a program in a world, and shorthands. What a
// strategy computes does not depend on where it runs: Mirrored and OneDevice give the same values in every world.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "strategies/strategy/replica_context.h"
#include "tests/conformance/worlds.h"

namespace tandem {

// Its worlds are in strategy_run_test.cc; a suite is instantiated once, however many files its tests are in.
class Strategies : public InEveryWorld {
 protected:
  void run(int devices, const Program& program) const { open_world(GetParam(), 1, devices)->run(program); }
};

inline std::vector<Device*> devices_of(Worker& worker) {
  return {worker.devices().begin(), worker.devices().end()};
}

// What a tensor holds, brought to the host.
inline std::vector<float> floats_of(Worker& worker, const Tensor& tensor) {
  const Tensor host = worker.cpu().allocate(tensor.dtype(), tensor.shape());
  tensor.device().synchronize();
  worker.cpu().compute_stream().copy(host, tensor);
  worker.cpu().compute_stream().synchronize();
  const std::span<float> values = host.values<float>();
  return {values.begin(), values.end()};
}

inline Tensor filled(Device& device, Shape shape, double value) {
  Tensor tensor = device.allocate(DType::f32, shape);
  device.compute_stream().launch(op::fill(tensor, value));
  return tensor;
}

inline int replica_id() {
  return get_replica_context()->replica_id_in_sync_group();
}

template <typename Expected>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another kind of error: ") + error.what();
  }
  return "no error";
}

}  // namespace tandem
