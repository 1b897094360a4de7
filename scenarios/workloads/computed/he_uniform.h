// Initial weights of layers that are followed by ReLU.
#pragma once

#include <cstdint>
#include <functional>

namespace tandem {

// Returns a function of uniform random values with variance 2 / inputs (He and others, "Delving Deep into Rectifiers",
// 2015), which are the same with every standard library. The function draws all values at its first call, and must not
// be called concurrently.
std::function<double(std::int64_t element)> he_uniform(std::int64_t inputs, std::int64_t count, std::uint64_t seed);

}  // namespace tandem
