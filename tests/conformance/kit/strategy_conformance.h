// The tests every strategy has to pass, for strategies of one's own: link tandem_strategy_conformance, register the
// strategy, and write
//
//   INSTANTIATE_TEST_SUITE_P(LocalSgd, StrategyConformance, testing::ValuesIn(in_every_world({"local_sgd"})),
//                            StrategyConformance::name);
//
// Each test makes the strategy by name in every engine that was built, under several seeded schedules, with 1, 2 and 4
// replicas, and on 64 simulated GPUs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "strategies/base/strategy.h"
#include "strategies/strategies.h"
#include "tests/conformance/worlds.h"

namespace tandem {

// What is promised of a strategy beside the API.
struct StrategyTraits {
  std::string name{};                // as registered
  bool replicates_variables = true;  // one component a replica, each with a device of its own
  bool trains_in_step = true;        // gradients are combined in every step: training equals one device's
  int max_replicas = 4;              // OneDevice: 1
};

struct StrategyUnderTest {
  StrategyTraits traits{};
  World world{};
  int replicas = 1;
};

std::vector<StrategyUnderTest> in_every_world(const StrategyTraits& traits);
std::ostream& operator<<(std::ostream& out, const StrategyUnderTest& tested);
std::ostream& operator<<(std::ostream& out, const StrategyTraits& traits);

class StrategyConformance : public testing::TestWithParam<StrategyUnderTest> {
 public:
  static std::string name(const testing::TestParamInfo<StrategyUnderTest>& info);

 protected:
  // An engine may be built where it cannot run.
  void SetUp() override {
    if (const std::string reason = reason_to_skip(GetParam().world); !reason.empty()) GTEST_SKIP() << reason;
  }
  // Calls `program` on one worker of the world with the strategy.
  void under_strategy(const std::function<void(Worker& worker, Strategy& strategy)>& program) const;
};

// On 64 simulated GPUs, 8 machines' worth on one, and the schedules of many seeds; skipped without a simulated engine.
class StrategyAtScale : public testing::TestWithParam<StrategyTraits> {
 public:
  static std::string name(const testing::TestParamInfo<StrategyTraits>& info);
};

// A program of calls drawn from `seed`: run() with merge_call, all_reduce and all_gather, changes of variables of every
// kind, reduce, gather, update. Returns every value it saw. Whole numbers, so that sums are exact in any order.
std::vector<double> random_calls(Worker& worker, Strategy& strategy, std::uint64_t seed, int calls);

}  // namespace tandem
