// The parameters of a dense layer in one flat tensor: the weights [inputs, outputs] row by row, then the bias
// [outputs].
#pragma once

#include <cstdint>

#include "engine/tensor.h"

namespace tandem {

struct LinearShape {
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t parameters() const { return inputs * outputs + outputs; }
};

struct LinearTensors {
  Tensor weights, bias;
};

inline LinearTensors linear_views(const Tensor& flat, LinearShape shape) {
  return {.weights = flat.view(0, {shape.inputs, shape.outputs}),
          .bias = flat.flat_slice(shape.inputs * shape.outputs, shape.outputs)};
}

}  // namespace tandem
