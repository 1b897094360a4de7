// What a calibration measures, and at which sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace tandem::calibration {

struct GemmShape {
  DType dtype = DType::f32;  // the rate; of tensors of f32 where it is tf32
  std::int64_t m = 0, n = 0, k = 0;
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  auto operator<=>(const GemmShape&) const = default;
};

struct Plan {
  std::vector<DType> gemm_dtypes;
  // All sizes by rising size.
  std::vector<std::int64_t> gemm_sides;        // the grid of m, n and k
  std::vector<std::int64_t> memory_bytes;      // of element-wise ops, read plus written
  std::vector<std::int64_t> copy_bytes;        // of copies within a device and between devices
  std::vector<std::int64_t> collective_bytes;  // of all_reduce buffers
  std::int64_t pool_bytes = 0;                 // operands rotate through so much, see program.cc
  int repetitions = 0;                         // at least, of everything
  double shape_budget_s = 0;                   // of one shape, over all rounds
  double dtype_budget_s = 0;                   // of all shapes of a type; sides that exceed it are left out
};

// For devices of this type. `quick`: coarser, and f32 alone; else every type that the engine multiplies. `dtypes`:
// only these, where there are any.
Plan plan_for(const Capabilities& capabilities, DeviceType type, bool quick, const std::vector<DType>& dtypes);

// Without the sizes that are too much for a device with `memory_bytes`; 0: any. The smallest stay.
Plan fitting(Plan plan, double memory_bytes);

// The shapes of a type that are within the time there is at `flops_per_s`. Always those of the smallest side.
std::vector<GemmShape> gemm_shapes(const Plan& plan, DType dtype, double flops_per_s);

// How often one shape is multiplied in each round.
int repetitions_of(const Plan& plan, const GemmShape& shape, double flops_per_s);

// The type of its tensors.
DType storage_of(DType rate);

// The operations of a Communicator that are measured.
std::vector<std::string_view> collectives();

// By these names records are found again.
std::string label_of(const GemmShape& shape);
std::string memory_label(std::int64_t bytes);
inline constexpr std::string_view kTinyOpLabel = "tiny";           // issued to an idle stream
inline constexpr std::string_view kQueuedOpLabel = "tiny queued";  // behind work, so that the issuing does not count
inline constexpr std::string_view kBlockerLabel = "work";
inline constexpr std::string_view kSynchronizeLabel = "synchronize";

}  // namespace tandem::calibration
