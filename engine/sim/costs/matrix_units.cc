#include "engine/sim/costs/matrix_units.h"

#include <charconv>

#include "engine/sim/costs/kernel_constants.h"

namespace tandem::sim {
namespace {

bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

// Returns the 80 of "sm_80"; 0 for other architectures.
int sm_version(std::string_view architecture) {
  int version = 0;
  if (!architecture.starts_with("sm_")) return version;
  std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), version);
  return version;
}

}  // namespace

bool has_matrix_units(std::string_view architecture, DType dtype) {
  if (dtype == DType::fp8 || dtype == DType::fp4) return true;  // no other unit computes them
  if (architecture.starts_with("gfx")) return is_half(dtype) || dtype == DType::tf32;
  if (!architecture.starts_with("sm_")) return is_half(dtype);
  const int version = sm_version(architecture);
  return dtype == DType::f16 ? version >= 70 : (is_half(dtype) || dtype == DType::tf32) && version >= 80;
}

bool has_wide_loads(std::string_view architecture, DType dtype) {
  if (dtype == DType::fp8 || dtype == DType::fp4) return true;
  return is_half(dtype) && sm_version(architecture) >= 80;
}

double product_share(std::string_view architecture, DType dtype, bool scales_blocks) {
  const bool is_slower = scales_blocks && sm_version(architecture) < 100;
  if (dtype == DType::fp8) return kernel_constants::kFp8Share * (is_slower ? kernel_constants::kBlockScalesShare : 1);
  if (dtype == DType::fp4) return kernel_constants::kFp4Share;
  return has_wide_loads(architecture, dtype) ? kernel_constants::kProductShare : kernel_constants::kTrainingShare;
}

}  // namespace tandem::sim
