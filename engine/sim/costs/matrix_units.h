// What is known of a GPU's units for products of matrices by its architecture ("sm_90", "gfx942") and the element type.
#pragma once

#include <string_view>

#include "topologies/base/dtype.h"

namespace tandem::sim {

// Whether products of this type run on tensor or matrix cores: f16 from Volta (sm_70) on, bf16 and tf32 from Ampere
// (sm_80) on; NVIDIA CUDA C++ Programming Guide, compute capabilities. AMD's gfx9 of the MI series have them for both.
bool has_matrix_units(std::string_view architecture, DType dtype);

// Whether kernels for types of at most two bytes load several elements at a time: those for Ampere and later GPUs.
bool has_wide_loads(std::string_view architecture, DType dtype);

// Returns the share of the largest GEMM's rate that products reach: kernel_constants.h. `scales_blocks`: of
// ProductShape.
double product_share(std::string_view architecture, DType dtype, bool scales_blocks = false);

}  // namespace tandem::sim
