// Which floating-point numbers of eight and four bits there are: small_floats.h has what they are.
#pragma once

#include <cstdint>

namespace tandem {

// e4m3 has NaN and no infinities, e5m2 has both, e2m1 neither.
enum class SmallFloat : std::uint8_t { e4m3, e5m2, e2m1 };

// How the scale of a block of elements is stored. f32: the largest element becomes the largest number of the format.
// e8m0: the same, with a power of two. e4m3: a second scale in f32, of the whole tensor, brings the scales of blocks
// into range (NVIDIA and others, "Pretraining Large Language Models with NVFP4", arXiv:2509.25149, appendix B).
enum class ScaleType : std::uint8_t { f32, e8m0, e4m3 };

}  // namespace tandem
