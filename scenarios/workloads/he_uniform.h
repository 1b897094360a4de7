// First weights of layers that are followed by ReLU.
#pragma once

#include <cstdint>
#include <functional>

namespace tandem {

// He and others, "Delving Deep into Rectifiers" (2015): variance 2 / inputs. Uniform, and the same with every standard
// library. Draws the values at the first call. The function it returns must not be called concurrently.
std::function<double(std::int64_t element)> he_uniform(std::int64_t inputs, std::int64_t count, std::uint64_t seed);

}  // namespace tandem
