// Ops of one's own run on every engine, in the order of their stream, and take what their cost says in a simulation.
#include <atomic>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// to = a * a + 1, as a user writes it.
Op square_plus_one(Tensor to, Tensor a, double flops_each = 2) {
  const auto count = static_cast<double>(a.element_count());
  const auto bytes = static_cast<double>(a.size_bytes() + to.size_bytes());
  return op::custom(Name("square_plus_one"), {.flops = flops_each * count, .bytes = bytes},
                    {std::move(to), std::move(a)}, {.cpu = [](std::span<const Tensor> operands) {
                      const std::span<float> result = operands[0].values<float>(), from = operands[1].values<float>();
                      for (std::size_t i = 0; i < result.size(); ++i) result[i] = from[i] * from[i] + 1;
                    }});
}

// On GPUs of this machine the op would need a function for CUDA.
class EveryEngineRunsOnesOwn : public EveryEngine {
 protected:
  void SetUp() override {
    EveryEngine::SetUp();
    if (!IsSkipped() && GetParam().compute_devices == DeviceType::gpu && !GetParam().collectives) {
      GTEST_SKIP() << "the op has no function for GPUs";
    }
  }
};

TEST_P(EveryEngineRunsOnesOwn, InTheOrderOfTheStream) {
  run(2, 2, [](Worker& worker) {
    for (Device* device : worker.devices()) {
      const Tensor a = put(worker, *device, {1, 2, -3}), to = device->allocate(DType::f32, {3});
      device->compute_stream().launch(square_plus_one(to, a));
      device->compute_stream().launch(op::scale_add(to, to, 10, 0));
      device->compute_stream().launch(square_plus_one(a, to));
      EXPECT_THAT(get(worker, a), ElementsAre(401, 2501, 10001));
    }
  });
}

TEST_P(EveryEngineRunsOnesOwn, LeavesARecordOfItsCost) {
  const Timeline timeline = run(1, 1, [](Worker& worker) {
    Device& device = *worker.devices()[0];
    const Tensor a = put(worker, device, {1, 2, -3});
    device.compute_stream().launch(square_plus_one(a, a));
    device.synchronize();
  });
  const auto record = std::find_if(timeline.records.begin(), timeline.records.end(),
                                   [](const Record& one) { return one.name == "square_plus_one"; });
  if (workers_here(GetParam(), 1) == 0) return;
  ASSERT_NE(record, timeline.records.end());
  EXPECT_EQ(record->flops, 6);
  EXPECT_EQ(record->bytes, 24);
}

TEST_P(EveryEngineRunsOnesOwn, ReportsItsErrors) {
  const Program program = [](Worker& worker) {
    Device& device = *worker.devices()[0];
    const Tensor a = device.allocate(DType::f32, {1});
    device.compute_stream().launch(op::custom(
        Name("failing"), {}, {a}, {.cpu = [](std::span<const Tensor>) { throw std::runtime_error("no luck"); }}));
    device.synchronize();
  };
  EXPECT_THAT([&] { run(1, 1, program); },
              testing::ThrowsMessage<RunError>(testing::AllOf(HasSubstr("'failing'"), HasSubstr("no luck"))));
}

TEST_P(EveryEngineRunsOnesOwn, RefusesWhatItCannotCall) {
  run(1, 1, [](Worker& worker) {
    const Tensor a = worker.cpu().allocate(DType::f32, {1});
    EXPECT_THAT([&] { op::custom(Name("mine"), {}, {a}, {}); },
                testing::ThrowsMessage<UsageError>(HasSubstr("'mine' without a function for CPUs")));
    EXPECT_THAT([&] { op::custom(Name("mine"), {}, {Tensor()}, {.cpu = [](std::span<const Tensor>) {}}); },
                testing::ThrowsMessage<UsageError>(HasSubstr("'mine' without an operand")));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineRunsOnesOwn, testing::ValuesIn(built_worlds()), name_of_world);

// The larger of flops at the peak rate (1e12 of the test's GPU) and bytes; with and without values.
TEST(OnesOwnInASimulation, TakesWhatItsCostSays) {
  for (const World& world : built_worlds()) {
    if (!world.collectives) continue;
    for (const ValueMode values : {ValueMode::real, ValueMode::none}) {
      const auto seconds = [&](double flops_each) {
        EngineOptions options = world_options(world, 1, 1);
        options.values = values;
        std::atomic<int> calls = 0;
        const Timeline timeline = open_engine(world.engine, options)->run([&](Worker& worker) {
          Device& device = *worker.devices()[0];
          const Tensor a = device.allocate(DType::f32, {1000});
          const Op mine = square_plus_one(a, a, flops_each);
          device.compute_stream().launch(
              op::custom(mine.name, mine.cost, {a}, {.cpu = [&](std::span<const Tensor>) { ++calls; }}));
          device.synchronize();
        });
        EXPECT_EQ(calls, values == ValueMode::real ? 1 : 0) << world.name;
        for (const Record& record : timeline.records) {
          if (record.name == "square_plus_one") return static_cast<double>(record.end_ns - record.start_ns) * 1e-9;
        }
        ADD_FAILURE() << "no record in " << world.name;
        return 0.0;
      };
      EXPECT_EQ(seconds(0), seconds(2)) << "bytes decide in " << world.name;
      EXPECT_NEAR(seconds(2e6) - seconds(1e6), 1e-3, 1e-5) << world.name;
    }
  }
}

}  // namespace
}  // namespace tandem
