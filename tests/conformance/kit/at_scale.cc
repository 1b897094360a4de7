#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tests/conformance/kit/judged_run.h"

namespace tandem {
namespace {

const World* simulated_world() {
  static const std::vector<World> worlds = built_worlds();
  for (const World& world : worlds) {
    if (world.collectives) return &world;
  }
  return nullptr;
}

TEST_P(StrategyAtScale, TrainsOn64GpusWithEqualValuesAndEqualTimes) {
  const World* world = simulated_world();
  if (!world) GTEST_SKIP() << "no simulated engine was built";
  const StrategyUnderTest tested{GetParam(), *world, GetParam().max_replicas == 1 ? 1 : 64};
  const auto train = [&](Numbers& path) {
    Nanoseconds end = 0;
    run_judged(tested, [&](Judge& judge, Worker& worker, Strategy& strategy) {
      path = descend(judge, worker, strategy, {.steps = 12});
      end = worker.now();
    });
    return end;
  };
  Numbers first, second;
  const Nanoseconds took = train(first);
  if (HasFailure()) return;
  EXPECT_GT(took, 0);
  const Nanoseconds took_again = train(second);
  const std::string where = testing::PrintToString(tested);
  const JudgedCall call{"12 steps of gradient descent, run a second time",
                        "keeps no state between runs and takes its time and order from the engine alone"};
  if (second != first) {
    ADD_FAILURE() << message_of(call,
                                fmt::format("variable 'w' after each step: found {}, must be {} as in the first run",
                                            numbers_text(second), numbers_text(first)),
                                "", where);
  } else if (took_again != took) {
    ADD_FAILURE() << message_of(
        call, fmt::format("simulated time: found {} ns, must be {} ns as in the first run", took_again, took), "",
        where);
  }
}

// Every seed another order of what is ready at the same time: the values must not depend on it.
TEST_P(StrategyAtScale, RandomCallsDoNotDependOnTheSchedule) {
  const World* world = simulated_world();
  if (!world) GTEST_SKIP() << "no simulated engine was built";
  const int seeds = std::getenv("TANDEM_SEEDS") ? std::atoi(std::getenv("TANDEM_SEEDS")) : 1000;
  StrategyUnderTest tested{GetParam(), *world, std::min(GetParam().max_replicas, 3)};
  const auto under = [&](std::optional<std::uint64_t> seed, std::uint64_t program) {
    tested.world.schedule_seed = seed;
    std::vector<SeenCall> calls;
    run_judged(tested, [&](Judge& judge, Worker& worker, Strategy& strategy) {
      calls = random_calls(worker, strategy, program, 6, [&](const std::string& call) {
        judge.asks(fmt::format("{} of random_calls(seed {}, 6 calls)", call, program),
                   "computes the same values under every schedule");
      });
    });
    return calls;
  };
  for (int seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    const auto program = static_cast<std::uint64_t>(seed % 20);
    const std::vector<SeenCall> expected = under(std::nullopt, program);
    if (HasFailure()) return;
    const std::vector<SeenCall> found = under(static_cast<std::uint64_t>(seed), program);
    expect_same_calls(tested, fmt::format("random_calls(seed {}, 6 calls)", program), found, expected,
                      "in the run without a schedule seed");
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StrategyAtScale);

}  // namespace

std::string StrategyAtScale::name(const testing::TestParamInfo<StrategyTraits>& info) {
  return info.param.name;
}

}  // namespace tandem
