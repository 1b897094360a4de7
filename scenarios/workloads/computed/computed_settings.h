// How a model that is really computed learns.
#pragma once

#include <cstdint>

namespace tandem {

struct ComputedSettings {
  double learning_rate = 0.1;
  double momentum = 0;  // of optimizer `momentum`
  double dropout = 0;   // the probability that dropout drops an element
  std::uint64_t seed = 1;
  std::int64_t batch = 1;  // examples of a step, for all devices together
};

}  // namespace tandem
