// All-reductions of many tensors through every cross-device operation, packed or not, in every world.
#include <gmock/gmock.h>

#include "strategies/strategy/replica_context.h"
#include "strategies/types/mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

TEST_P(Strategies, EveryCrossDeviceOperationSums) {
  for (const char* name : {"nccl", "hierarchical_copy", "reduction_to_one_device"}) {
    for (const int n : {1, 2, 3, 8}) {
      for (const Packing packing : {Packing{.num_packs = 0}, Packing{.num_packs = 2}, Packing{.bytes_per_pack = 40}}) {
        run(n, [&](Worker& worker) {
          MirroredStrategy strategy(worker, devices_of(worker), name, packing);
          const std::vector<std::int64_t> sizes = {1, 7, 10, 1000};
          std::vector<std::vector<Tensor>> tensors(static_cast<std::size_t>(n));
          for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean}) {
            strategy.run([&](const Value::Parts&) {
              ReplicaContext& context = *get_replica_context();
              auto& mine = tensors[static_cast<std::size_t>(replica_id())];
              mine.clear();
              for (std::size_t t = 0; t < sizes.size(); ++t) {
                mine.push_back(
                    filled(context.device(), {sizes[t]}, static_cast<double>(t + 1) * (replica_id() + 1) * n));
              }
              context.all_reduce_async(op, mine).wait();
              return Value();
            });
            const int total = n * (n + 1) / 2 * (op == ReduceOp::sum ? n : 1);
            for (const auto& mine : tensors) {
              for (std::size_t t = 0; t < sizes.size(); ++t) {
                EXPECT_THAT(floats_of(worker, mine[t]),
                            testing::Each(static_cast<float>(static_cast<std::size_t>(total) * (t + 1))))
                    << name << " over " << n << " devices, " << name_of(op);
              }
            }
          }
        });
      }
    }
  }
}

// On the simulated engine's own clock, which repeats; the real one's is in the benchmarks.
TEST_P(Strategies, PackingSmallGradientsPaysInTheModel) {
  if (!GetParam().collectives) GTEST_SKIP() << "a real engine's times are for benchmarks";
  const auto time_of = [&](const Packing& packing) {
    Nanoseconds took = 0;
    run(4, [&](Worker& worker) {
      MirroredStrategy strategy(worker, devices_of(worker), "nccl", packing);
      std::vector<std::vector<Tensor>> gradients(4);
      for (std::size_t r = 0; r < 4; ++r) {
        for (int i = 0; i < 500; ++i) gradients[r].push_back(worker.devices()[r]->allocate(DType::f32, {256}));
      }
      const Nanoseconds start = worker.now();
      strategy.run([&](const Value::Parts&) {
        get_replica_context()
            ->all_reduce_async(ReduceOp::sum, gradients[static_cast<std::size_t>(replica_id())])
            .wait();
        return Value();
      });
      for (Device* device : worker.devices()) device->synchronize();
      took = worker.now() - start;
    });
    return static_cast<double>(took);
  };
  EXPECT_GE(time_of({.num_packs = 0}), 5 * time_of({.num_packs = 1}));
}

}  // namespace
}  // namespace tandem
