// The tests every strategy has to pass, for strategies of one's own: link tandem_strategy_conformance, register the
// strategy, and write
//
//   INSTANTIATE_TEST_SUITE_P(LocalSgd, StrategyConformance, testing::ValuesIn(in_every_world({"local_sgd"})),
//                            StrategyConformance::name);
//
// Each test makes the strategy by name in every engine that was built, under several seeded schedules, with 1, 2 and 4
// replicas, and on 64 simulated GPUs. Programs started by mpirun run the tests of the mpi engine on all of its ranks
// (--gtest_filter=*_mpi); the workers are then in several processes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strategies/strategies.h"
#include "strategies/strategy/strategy.h"
#include "tests/conformance/worlds.h"

namespace tandem {

// What is promised of a strategy beside the API.
struct StrategyTraits {
  std::string name{};                // as registered
  bool replicates_variables = true;  // one component a replica, each with a device of its own
  bool trains_in_step = true;        // gradients are combined in every step: training equals one device's
  int max_replicas = 4;              // OneDevice: 1
  bool spans_workers = false;        // replicas of several workers are in step, as many on each
  bool uses_servers = false;         // keeps variables on the tasks of the job "ps"
  StrategyOptions options{};         // it is made with
};

struct StrategyUnderTest {
  StrategyTraits traits{};
  World world{};
  int replicas = 1;  // of all workers
  int workers = 1, servers = 0;

  int local_replicas() const { return replicas / workers; }
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
    if (GetParam().servers == 0) return;
    if (const std::string reason = reason_not_to_reach_others(GetParam().world); !reason.empty())
      GTEST_SKIP() << reason;
  }
  using StrategyProgram = std::function<void(Worker& worker, Strategy& strategy)>;
  // Calls `program` on the workers of the world, each with a strategy object of its own.
  void under_strategy(const World& world, const StrategyProgram& program) const;
};

// On 64 simulated GPUs, 8 machines' worth on one, and the schedules of many seeds; skipped without a simulated engine.
class StrategyAtScale : public testing::TestWithParam<StrategyTraits> {
 public:
  static std::string name(const testing::TestParamInfo<StrategyTraits>& info);
};

// A call of a random program and the values that were seen after it.
struct SeenCall {
  std::string call{};
  std::vector<double> values{};
  bool operator==(const SeenCall&) const = default;
};

// A program of calls drawn from `seed`: run() with merge_call, all_reduce and all_gather, changes of variables of every
// kind, reduce, gather, update. Returns every value it saw. Whole numbers, so that sums are exact in any order. Calls
// `before` before each call, with its text.
std::vector<SeenCall> random_calls(Worker& worker, Strategy& strategy, std::uint64_t seed, int calls,
                                   const std::function<void(const std::string& call)>& before = {});

}  // namespace tandem
