#include "scenarios/calibration/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::calibration {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

Plan for_processors(bool quick) {
  Plan plan{
      .gemm_dtypes = {},
      .gemm_sides = {1, 8, 32, 128, 512, 1024},
      .gemm_long_sides = {4096, 32768},
      .gemm_beside_long = {32, 256},
      .memory_bytes = {12, 1200, 12 * kKiB, 96 * kKiB, 768 * kKiB, 6 * kMiB, 12 * kMiB, 24 * kMiB, 48 * kMiB},
      .kernel_bytes = {kKiB, 12 * kKiB, 96 * kKiB, 768 * kKiB, 6 * kMiB},
      .most_bytes_of_arithmetic = 96 * kKiB,
      .has_products_between_kernels = true,
      .copy_bytes = {4, 512, 4 * kKiB, 64 * kKiB, kMiB, 4 * kMiB, 8 * kMiB, 16 * kMiB, 32 * kMiB},
      .collective_bytes = {256, 4 * kKiB, 64 * kKiB, 512 * kKiB, 2 * kMiB, 8 * kMiB, 32 * kMiB},
      .in_use_bytes = {4 * kMiB, 8 * kMiB, 16 * kMiB, 20 * kMiB, 24 * kMiB, 32 * kMiB, 48 * kMiB, 64 * kMiB, 96 * kMiB},
      .pool_bytes = 8 * kMiB,
      .repetitions = 5,
      .shape_budget_s = 0.02,
      .dtype_budget_s = 20};
  if (quick) return plan;
  plan.gemm_sides = {1, 8, 16, 32, 64, 128, 256, 512, 1024};
  plan.gemm_long_sides = {4096, 16384, 65536};
  plan.gemm_beside_long = {8, 32, 128, 256};
  plan.collective_bytes = {256, kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};
  plan.repetitions = 11;
  plan.shape_budget_s = 0.06;
  plan.dtype_budget_s = 120;
  return plan;
}

// The largest element-wise op exceeds any cache by far.
Plan for_gpus(bool quick) {
  Plan plan{.gemm_dtypes = {},
            .gemm_sides = {8, 32, 128, 512, 2048, 8192},
            .gemm_long_sides = {32 * kKiB, 256 * kKiB},
            .gemm_beside_long = {64, 512, 4096},
            .memory_bytes = {12, 12 * kKiB, 192 * kKiB, 3 * kMiB / 2, 12 * kMiB, 96 * kMiB, 768 * kMiB},
            .kernel_bytes = {12 * kKiB, 192 * kKiB, 3 * kMiB / 2, 12 * kMiB, 96 * kMiB},
            .copy_bytes = {4, 4 * kKiB, 64 * kKiB, kMiB, 8 * kMiB, 64 * kMiB},
            .collective_bytes = {256, 4 * kKiB, 64 * kKiB, 512 * kKiB, 4 * kMiB, 32 * kMiB, 128 * kMiB},
            .pool_bytes = 32 * kMiB,
            .repetitions = 5,
            .warm_up_s = 5,
            .shape_budget_s = 0.005,
            .dtype_budget_s = 5};
  if (quick) return plan;
  plan.gemm_sides = {8, 32, 128, 256, 512, 1024, 2048, 4096, 8192};
  plan.gemm_long_sides = {32 * kKiB, 64 * kKiB, 256 * kKiB};
  plan.gemm_beside_long = {16, 64, 256, 1024, 4096};
  plan.copy_bytes.push_back(256 * kMiB);
  plan.collective_bytes = {256,  kKiB,     4 * kKiB,  16 * kKiB, 64 * kKiB, 256 * kKiB,
                           kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB};
  plan.repetitions = 11;
  plan.warm_up_s = 10;
  plan.shape_budget_s = 0.02;
  plan.dtype_budget_s = 60;
  return plan;
}

std::vector<DType> measured_dtypes(const Capabilities& capabilities, bool quick, const std::vector<DType>& wanted) {
  std::vector<DType> dtypes;
  for (const DType dtype : capabilities.gemm_dtypes) {
    const bool is_wanted =
        wanted.empty() ? !quick || dtype == DType::f32 : std::find(wanted.begin(), wanted.end(), dtype) != wanted.end();
    if (is_wanted) dtypes.push_back(dtype);
  }
  return dtypes;
}

std::vector<GemmShape> grid_of(DType dtype, const std::vector<std::int64_t>& sides) {
  std::vector<GemmShape> shapes;
  for (const std::int64_t m : sides) {
    for (const std::int64_t n : sides) {
      for (const std::int64_t k : sides) shapes.push_back({dtype, m, n, k});
    }
  }
  return shapes;
}

bool fits_budget(const Plan& plan, const std::vector<GemmShape>& shapes, double flops_per_s) {
  double flops = 0;
  for (const GemmShape& shape : shapes) flops += shape.flops();
  return flops * plan.repetitions <= plan.dtype_budget_s * flops_per_s;
}

}  // namespace

Plan plan_for(const Capabilities& capabilities, DeviceType type, bool quick, const std::vector<DType>& dtypes) {
  Plan plan = type == DeviceType::gpu ? for_gpus(quick) : for_processors(quick);
  plan.gemm_dtypes = measured_dtypes(capabilities, quick, dtypes);
  for (const DType rate : plan.gemm_dtypes) {
    std::vector<DType>& stored = plan.memory_dtypes;
    if (std::find(stored.begin(), stored.end(), storage_of(rate)) == stored.end()) stored.push_back(storage_of(rate));
  }
  return plan;
}

// Several blocks of each size are in use at the same time, and so are other pools: the three operands of a product may
// take an eighth of the memory, those of one with a long side a third, everything else a sixteenth.
Plan fitting(Plan plan, double memory_bytes) {
  if (memory_bytes <= 0) return plan;
  const auto drop = [](std::vector<std::int64_t>& sizes, double most, const auto& bytes_of) {
    while (sizes.size() > 1 && bytes_of(static_cast<double>(sizes.back())) > most) sizes.pop_back();
  };
  drop(plan.gemm_sides, memory_bytes / 8, [](double side) { return 3 * 8 * side * side; });
  if (!plan.gemm_beside_long.empty()) {
    const auto beside = static_cast<double>(plan.gemm_beside_long.back());
    drop(plan.gemm_long_sides, memory_bytes / 3, [beside](double side) { return 3 * 8 * side * beside; });
  }
  for (std::vector<std::int64_t>* sizes :
       {&plan.memory_bytes, &plan.kernel_bytes, &plan.copy_bytes, &plan.collective_bytes, &plan.in_use_bytes}) {
    drop(*sizes, memory_bytes / 16, [](double bytes) { return bytes; });
  }
  plan.pool_bytes = std::min(plan.pool_bytes, static_cast<std::int64_t>(memory_bytes / 16));
  return plan;
}

// Leaves out whole sides, so that the rest is still a grid.
std::vector<GemmShape> gemm_shapes(const Plan& plan, DType dtype, double flops_per_s) {
  std::vector<std::int64_t> sides = plan.gemm_sides;
  while (sides.size() > 1 && !fits_budget(plan, grid_of(dtype, sides), flops_per_s)) sides.pop_back();
  return grid_of(dtype, sides);
}

// A product whose inner side is long has its left operand transposed, as gradients of weights do.
std::vector<GemmShape> long_gemm_shapes(const Plan& plan, DType dtype, double flops_per_s) {
  if (gemm_shapes(plan, dtype, flops_per_s).back().m < plan.gemm_sides.back()) return {};
  std::vector<GemmShape> shapes;
  for (const std::int64_t side : plan.gemm_long_sides) {
    std::vector<GemmShape> more = shapes;
    for (const std::int64_t first : plan.gemm_beside_long) {
      for (const std::int64_t second : plan.gemm_beside_long) {
        more.push_back({dtype, side, first, second});
        more.push_back({dtype, first, side, second});
        more.push_back({dtype, first, second, side});
      }
    }
    if (!fits_budget(plan, more, flops_per_s)) break;
    shapes = std::move(more);
  }
  return shapes;
}

int repetitions_of(const Plan& plan, const GemmShape& shape, double flops_per_s) {
  constexpr int kMost = 8;
  const double expected_s = shape.flops() / flops_per_s;
  return static_cast<int>(std::clamp(plan.shape_budget_s / plan.repetitions / expected_s, 1.0, double{kMost}));
}

DType storage_of(DType rate) {
  return rate == DType::tf32 ? DType::f32 : rate;
}

std::vector<std::string_view> collectives() {
  return {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"};
}

std::string label_of(const GemmShape& shape) {
  return fmt::format("gemm {} {}x{}x{}", name_of(shape.dtype), shape.m, shape.n, shape.k);
}

std::string kernel_label(std::string_view kernel, std::int64_t bytes) {
  return fmt::format("kernel {} {}", kernel, bytes);
}

std::string in_use_label(std::string_view work, std::int64_t in_use_bytes) {
  return fmt::format("{}, {} in use", work, in_use_bytes);
}

std::string memory_label(DType dtype, std::int64_t bytes) {
  return fmt::format("memory {} {}", name_of(dtype), bytes);
}

}  // namespace tandem::calibration
