// What goes into a reduction over devices, and what comes out of it.
#pragma once

#include <utility>
#include <vector>

#include "engine/device.h"
#include "strategies/cross_device/destinations.h"
#include "strategies/values/value.h"

namespace tandem {

// One logical tensor: its copy on each device, in device order, with equal shapes and element types.
using TensorGroup = std::vector<Tensor>;

// A value to be combined, and where the result is wanted.
using ReducePair = std::pair<Value, Destinations>;

// A reduction that has been issued: the reduced values, which may be used after wait().
struct ReductionInFlight {
  std::vector<Value> values{};
  std::vector<std::pair<Stream*, Event>> ends{};  // each compute stream, and the event it has to wait for
  // Makes later work on the compute streams start after the reduction. Does not block the caller.
  const std::vector<Value>& wait() const {
    for (const auto& [stream, event] : ends) stream->wait(event);
    return values;
  }
};

}  // namespace tandem
