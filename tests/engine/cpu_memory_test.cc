// What tensors of the cpu engine take, and how long they live.
#include "engine/cpu/cpu_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/engine/run_on_cpu.h"

namespace tandem {
namespace {

using testing::ElementsAre;

TEST(CpuMemory, IsCountedReusedAndAligned) {
  run_on_cpu(1, 1, [](Worker& worker) {
    Device& device = worker.cpu();
    EXPECT_EQ(device.memory_in_use_bytes(), 0);
    const void* first = nullptr;
    {
      const Tensor tensor = device.allocate(DType::f32, {1000});
      first = tensor.data();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
      EXPECT_EQ(device.memory_in_use_bytes(), 4000);
    }
    EXPECT_EQ(device.memory_in_use_bytes(), 0);
    EXPECT_EQ(device.allocate(DType::f32, {1000}).data(), first) << "the block is used again";
    EXPECT_EQ(device.memory_peak_bytes(), 4000);
    const Tensor empty = device.allocate(DType::f32, {0});
    EXPECT_TRUE(empty.has_values());
    EXPECT_TRUE(empty.values<float>().empty());
  });
}

TEST(CpuMemory, LivesAsLongAsTheWorkThatUsesIt) {
  run_on_cpu(1, 1, [](Worker& worker) {
    std::atomic<bool> may_go{false};
    Stream& stream = worker.cpu().compute_stream();
    const Tensor to = worker.cpu().allocate(DType::f32, {1000});
    {
      const Tensor from = worker.cpu().allocate(DType::f32, {1000});
      std::fill(from.values<float>().begin(), from.values<float>().end(), 3.0F);
      stream.launch(op::host_function("hold", {}, [&] { EXPECT_TRUE(becomes_true(may_go)); }));
      stream.launch(op::scale_add(to, from, 1, 0));
    }
    EXPECT_EQ(worker.cpu().memory_in_use_bytes(), 4000) << "the program has given up the other";
    const Tensor other = worker.cpu().allocate(DType::f32, {1000});
    std::fill(other.values<float>().begin(), other.values<float>().end(), 9.0F);
    may_go.store(true);
    stream.synchronize();
    EXPECT_THAT(to.values<float>(), testing::Each(3.0F));
    EXPECT_EQ(worker.cpu().memory_in_use_bytes(), 8000);
  });
}

TEST(CpuMemory, SaysWhatDoesNotFit) {
  run_on_cpu(1, 1, [](Worker& worker) {
    const Tensor some = worker.cpu().allocate(DType::f32, {250});
    EXPECT_THAT(([&] { worker.cpu().allocate(DType::f32, {std::int64_t{1} << 50}); }),
                testing::ThrowsMessage<RunError>(
                    testing::AllOf(testing::StartsWith("/job:worker/replica:0/task:0/device:CPU:0: no memory for a "
                                                       "tensor [1125899906842624] of f32"),
                                   testing::HasSubstr("1.000 kB in use on this device"))));
    EXPECT_THAT(([&] { worker.cpu().allocate(DType::tf32, {1}); }),
                testing::ThrowsMessage<RunError>(testing::HasSubstr("no tensors of tf32 (engine 'cpu' has f64, f32")));
  });
}

TEST(CpuMemory, OutlivesTheRun) {
  Tensor kept;
  run_on_cpu(1, 1, [&](Worker& worker) {
    kept = worker.cpu().allocate(DType::i32, {2});
    worker.cpu().compute_stream().launch(op::fill(kept, 8));
  });
  EXPECT_THAT(kept.values<std::int32_t>(), ElementsAre(8, 8));
}

}  // namespace
}  // namespace tandem
