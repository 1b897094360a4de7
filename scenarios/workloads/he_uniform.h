// First weights of layers that are followed by ReLU.
#pragma once

#include <cstdint>
#include <functional>

namespace tandem {

// He and others, "Delving Deep into Rectifiers" (2015): variance 2 / inputs. Uniform, and the same with every standard
// library. Values are drawn when the first one is asked for; calls of one function do not run concurrently.
std::function<double(std::int64_t element)> he_uniform(std::int64_t inputs, std::int64_t count, std::uint64_t seed);

}  // namespace tandem
