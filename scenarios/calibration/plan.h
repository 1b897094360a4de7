// The plan of a calibration: what is measured, and at which sizes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace tandem::calibration {

struct GemmShape {
  DType dtype = DType::f32;  // whose rate is measured; the tensors of tf32 are f32
  std::int64_t m = 0, n = 0, k = 0;
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  auto operator<=>(const GemmShape&) const = default;
};

struct Plan {
  std::vector<DType> gemm_dtypes;
  std::vector<DType> memory_dtypes = {DType::f32};  // of element-wise ops
  // All lists are in rising order.
  std::vector<std::int64_t> gemm_sides;          // the grid of m, n and k
  std::vector<std::int64_t> gemm_long_sides{};   // of products with one side beyond the grid
  std::vector<std::int64_t> gemm_beside_long{};  // the grid of their other sides
  std::vector<std::int64_t> memory_bytes;        // element-wise ops: bytes read plus written
  std::vector<std::int64_t> kernel_bytes{};      // kernels that are measured by themselves, as memory_bytes
  std::int64_t most_bytes_of_arithmetic = std::int64_t{1} << 62;  // in kernels with much arithmetic
  bool has_products_between_kernels = false;
  std::vector<std::int64_t> copy_bytes;             // copies within a device and between devices
  std::vector<std::int64_t> collective_bytes;       // buffers of all_reduce
  std::vector<std::int64_t> in_use_bytes{};         // memory of all devices that rounds like those of training use
  std::int64_t once_bytes = std::int64_t{1} << 62;  // collectives of this size or more are called once in each round
  std::int64_t pool_bytes = 0;                      // the block through which operands rotate: see Pool
  int repetitions = 0;                              // of every measurement, at least
  double warm_up_s = 0;       // time for products that bring clocks and temperatures to those of work
  double shape_budget_s = 0;  // time for one shape, over all rounds
  double dtype_budget_s = 0;  // time for all shapes of a type; sides that exceed it are left out
  // Called at the begin of each round of measurements, on the worker's task; may throw, to end the run.
  std::function<void()> on_round{};
  void begin_round() const {
    if (on_round) on_round();
  }
};

// Returns the plan for devices of this type. A `quick` plan has fewer sizes, and f32 only instead of every type that
// the engine multiplies. If `dtypes` is not empty, the plan has these types only.
Plan plan_for(const Capabilities& capabilities, DeviceType type, bool quick, const std::vector<DType>& dtypes);

// Returns the plan without the sizes that are too large for a device with `memory_bytes` (0: unknown), but always with
// the smallest ones.
Plan fitting(Plan plan, double memory_bytes);

// Returns the shapes of a type that fit into its budget of time at `flops_per_s`, and always those of the smallest
// side.
std::vector<GemmShape> gemm_shapes(const Plan& plan, DType dtype, double flops_per_s);

// Returns the shapes of a type with one side beyond the grid that fit into another such budget of time, if the whole
// grid fits into its own.
std::vector<GemmShape> long_gemm_shapes(const Plan& plan, DType dtype, double flops_per_s);

// Returns how often a shape is multiplied in each round.
int repetitions_of(const Plan& plan, const GemmShape& shape, double flops_per_s);

// Returns the type of the tensors of a product.
DType storage_of(DType rate);

// Returns the operations of a Communicator that are measured.
std::vector<std::string_view> collectives();

// How many ops run while a core is idle, before one wakes it, in turn; a single one takes about kWakeUpIdleS.
inline constexpr std::array<int, 5> kIdleOps = {1, 3, 10, 30, 60};

// Return the labels that identify records.
std::string label_of(const GemmShape& shape);
std::string memory_label(DType dtype, std::int64_t bytes);
std::string kernel_label(std::string_view kernel, std::int64_t bytes);
// `work`: one of kInUseWork or kInUseProducts.
std::string in_use_label(std::string_view work, std::int64_t in_use_bytes);
inline constexpr std::string_view kTinyOpLabel = "tiny";           // issued to an idle stream
inline constexpr std::string_view kQueuedOpLabel = "tiny queued";  // behind work, so that the issuing does not count
inline constexpr std::string_view kBlockerLabel = "work";
inline constexpr std::string_view kSynchronizeLabel = "synchronize";
inline constexpr std::string_view kHandOverLabel = "hand over";  // on two streams, in turn
inline constexpr std::string_view kIdleLabel = "while idle";     // runs while a core is idle
inline constexpr std::string_view kWakingOpLabel = "waking";     // issued to a stream that sleeps, thereafter

}  // namespace tandem::calibration
