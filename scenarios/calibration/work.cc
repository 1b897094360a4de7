// Measures work inside a device: matrix products, element-wise ops, copies.
#include "scenarios/calibration/program.h"
#include "scenarios/calibration/stages.h"

namespace tandem::calibration {
namespace {

void touch_all(const std::vector<Pool>& pools, std::int64_t count) {
  for (const Pool& pool : pools) pool.touch(count);
}

// Makes a matrix product at the rate of a type; the tensors of tf32 are f32.
Op product(const GemmShape& shape, Pool& inputs, Pool& outputs, bool transpose_a = false) {
  const Tensor left = transpose_a ? inputs.take_matrix(shape.k, shape.m) : inputs.take_matrix(shape.m, shape.k);
  Op op = op::gemm(outputs.take_matrix(shape.m, shape.n), left, inputs.take_matrix(shape.k, shape.n), transpose_a);
  op.name = label_of(shape);
  op.cost.dtype = shape.dtype;
  return op;
}

// Returns how long one product of this size takes on one device alone.
double product_s(Worker& worker, DType dtype, std::int64_t side) {
  constexpr int kTimed = 2;
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  Device& device = *worker.devices().front();
  Pool inputs(worker, device, storage_of(dtype), 2 * size * side * side, 0);
  Pool outputs(worker, device, storage_of(dtype), size * side * side, 0);
  const auto multiply = [&](int times) {
    for (int i = 0; i < times; ++i) {
      launch_unmeasured(device.compute_stream(), product({dtype, side, side, side}, inputs, outputs));
    }
    device.synchronize();
  };
  multiply(1);  // the first call initialises the library
  const Nanoseconds begin = worker.now();
  multiply(kTimed);
  return seconds_between(begin, worker.now()) / kTimed;
}

// Estimates the rate of one device from the first size that takes long enough. It is only used to divide the available
// time.
double probe_flops_per_s(Worker& worker, const Plan& plan, DType dtype) {
  constexpr std::int64_t kLeastSide = 256, kMostSide = 2048;
  constexpr double kLongEnoughS = 1e-3;
  const std::int64_t most = std::min(kMostSide, largest(plan.gemm_sides));
  for (std::int64_t side = std::min(kLeastSide, most);; side = std::min(2 * side, most)) {
    const double time_s = product_s(worker, dtype, side);
    const auto cube = static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
    if (time_s >= kLongEnoughS || side == most) return 2 * cube / time_s;
  }
}

// Repeats rounds over all shapes instead of one shape after the other, so that a disturbance of the machine spoils one
// sample of many shapes and not every sample of one.
void measure_products(Worker& worker, const Plan& plan, const std::vector<GemmShape>& shapes, double flops_per_s) {
  if (shapes.empty()) return;
  const DType dtype = shapes.front().dtype;
  std::int64_t elements = 0;  // of the largest matrix
  for (const GemmShape& shape : shapes) {
    elements = std::max({elements, shape.m * shape.n, shape.m * shape.k, shape.k * shape.n});
  }
  const std::int64_t matrix = elements * static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t small = plan.pool_bytes / 2;
  std::vector<Pool> inputs = pools_of(worker, storage_of(dtype), std::max(small, 2 * matrix), small);
  std::vector<Pool> outputs = pools_of(worker, storage_of(dtype), std::max(small, matrix), small);
  for (int round = 0; round < plan.repetitions; ++round) {
    plan.begin_round();
    for (const GemmShape& shape : shapes) {
      for (int i = 0; i < repetitions_of(plan, shape, flops_per_s); ++i) {
        for (std::size_t d = 0; d < inputs.size(); ++d) {
          const bool transpose_a = shape.k > largest(plan.gemm_sides);  // see long_gemm_shapes
          worker.devices()[d]->compute_stream().launch(product(shape, inputs[d], outputs[d], transpose_a));
        }
      }
      synchronize_all(worker);
    }
  }
}

}  // namespace

void measure_products(Worker& worker, const Plan& plan, Findings& findings) {
  for (const DType dtype : plan.gemm_dtypes) {
    const double flops_per_s = probe_flops_per_s(worker, plan, dtype);
    const std::vector<GemmShape> shapes = gemm_shapes(plan, dtype, flops_per_s);
    const std::vector<GemmShape> longer = long_gemm_shapes(plan, dtype, flops_per_s);
    measure_products(worker, plan, shapes, flops_per_s);
    measure_products(worker, plan, longer, flops_per_s);
    findings.gemms.insert(findings.gemms.end(), shapes.begin(), shapes.end());
    findings.gemms.insert(findings.gemms.end(), longer.begin(), longer.end());
  }
}

namespace {

void measure_memory_of(Worker& worker, const Plan& plan, DType dtype) {
  std::vector<Pool> pools =
      pools_of(worker, dtype, std::max(plan.pool_bytes, largest(plan.memory_bytes)), plan.pool_bytes);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  for (int round = 0; round < plan.repetitions; ++round) {
    plan.begin_round();
    for (const std::int64_t bytes : plan.memory_bytes) {
      const std::int64_t count = std::max<std::int64_t>(1, bytes / (3 * size));  // reads `to` and `a`, writes `to`
      touch_all(pools, count);  // the largest ops of the round before have pushed everything out of the caches
      for (int i = 0; i < kPerRound; ++i) {
        for (std::size_t d = 0; d < pools.size(); ++d) {
          Op op = op::scale_add(pools[d].take(count), pools[d].take(count), 0.5, 0.5);
          op.name = memory_label(dtype, bytes);
          worker.devices()[d]->compute_stream().launch(std::move(op));
        }
      }
      synchronize_all(worker);
    }
  }
}

}  // namespace

void measure_memory(Worker& worker, const Plan& plan) {
  for (const DType dtype : plan.memory_dtypes) measure_memory_of(worker, plan, dtype);
}

// Each device copies from the next one on the same physical device; a device that is alone there copies within itself.
void measure_local_copies(Worker& worker, const Plan& plan) {
  const std::size_t devices = worker.devices().size();
  const auto places = static_cast<std::size_t>(places_of(worker.capabilities(), worker.devices().front()->id().type));
  std::vector<Pool> pools =
      pools_of(worker, DType::f32, std::max(plan.pool_bytes, 2 * largest(plan.copy_bytes)), plan.pool_bytes);
  worker.begin_step(kLocalCopies);
  for (int round = 0; round < plan.repetitions; ++round) {
    plan.begin_round();
    for (const std::int64_t bytes : plan.copy_bytes) {
      touch_all(pools, bytes / 4);
      for (int i = 0; i < kPerRound; ++i) {
        for (std::size_t d = 0; d < devices; ++d) {
          const std::size_t peer = d + places < devices ? d + places : d % places;
          const Tensor from = pools[peer].take(bytes / 4);
          worker.devices()[d]->compute_stream().copy(pools[d].take(bytes / 4), from);
        }
      }
      synchronize_all(worker);
    }
  }
  worker.end_step();
}

}  // namespace tandem::calibration
