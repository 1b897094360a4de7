#include "scenarios/workloads/computed/he_uniform.h"

#include <cmath>
#include <memory>
#include <random>
#include <vector>

namespace tandem {
namespace {

// Computed here because the distributions of standard libraries differ.
std::vector<float> drawn(std::int64_t inputs, std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::mt19937_64 random(seed);
  const double limit = std::sqrt(6.0 / static_cast<double>(inputs));
  for (float& value : values) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    value = static_cast<float>((2 * unit - 1) * limit);
  }
  return values;
}

}  // namespace

std::function<double(std::int64_t)> he_uniform(std::int64_t inputs, std::int64_t count, std::uint64_t seed) {
  return [=, values = std::make_shared<std::vector<float>>()](std::int64_t element) {
    if (values->empty()) *values = drawn(inputs, count, seed);
    return static_cast<double>((*values)[static_cast<std::size_t>(element)]);
  };
}

}  // namespace tandem
