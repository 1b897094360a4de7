// What products of matrices cost simulated GPUs and the host that issues them, where rates were measured.
#include "engine/layer_ops.h"
#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

// A GPU computes 64 small products in the time of one with 64 times as many rows.
TEST(SimProducts, AGpuComputesABatchOfProductsTogether) {
  StarOptions star;
  star.gpu.rates = {
      {.concurrency = 1,
       .dtype = DType::f32,
       .gemm = {{.m = 32, .n = 32, .k = 32, .flops_per_s = 1e9}, {.m = 2048, .n = 32, .k = 32, .flops_per_s = 60e9}},
       .memory = {{.bytes = 1, .bytes_per_s = 1e12}},
       .copy = {}}};
  const Timeline timeline = simulate(gpu_workers(make_star(star), 1), [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const Tensor one = gpu.allocate(DType::f32, {64, 32, 32});
    gpu.compute_stream().launch(op::batched_gemm(one, one, one));
    gpu.synchronize();
  });
  const auto ops = records_of(timeline, RecordKind::op);
  EXPECT_NEAR(static_cast<double>(duration_ns(ops[0])), 64 * 2 * 32 * 32 * 32 / 60e9 * 1e9, 2);
}

// Records cost the host time, and products more of it than other ops, where the model says so.
TEST(SimProducts, TheHostPaysForRecordsAndForProducts) {
  StarOptions star;
  star.gpu.launch_overhead_s = vendor(3e-6);
  star.gpu.rates = {{.concurrency = 1,
                     .dtype = DType::f32,
                     .gemm_launch_overhead_s = 8e-6,
                     .record_overhead_s = 2e-6,
                     .gemm = {{.m = 1, .n = 1, .k = 1, .flops_per_s = 1e12}},
                     .memory = {{.bytes = 1, .bytes_per_s = 1e12}},
                     .copy = {}}};
  EngineOptions options = gpu_workers(make_star(star), 1);
  const auto issued_ns = [&](RecordLevel records) {
    options.records = records;
    Nanoseconds now = 0;
    simulate(options, [&](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      const Tensor one = gpu.allocate(DType::f32, {1, 1});
      gpu.compute_stream().launch(op::fill(one, 0));
      gpu.compute_stream().launch(op::gemm(gpu.allocate(DType::f32, {1, 1}), one, one));
      now = worker.now();
    });
    return now;
  };
  EXPECT_EQ(issued_ns(RecordLevel::all), 3000 + 8000 + 2 * 2000);
  EXPECT_EQ(issued_ns(RecordLevel::steps), 3000 + 8000);
}

}  // namespace
}  // namespace tandem
