// Runs programs under a strategy and judges it by what they come to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/kit/judge.h"
#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {

// Calls `program` on the workers of the world, each with a strategy object of its own; errors reach the caller. Returns
// the records.
Timeline run_strategy(const StrategyUnderTest& tested, const World& world,
                      const std::function<void(Worker& worker, Strategy& strategy)>& program,
                      std::shared_ptr<const Faults> faults = nullptr);

// The same in the world of `tested`; an error fails the test, with the call that it came from.
using JudgedProgram = std::function<void(Judge& judge, Worker& worker, Strategy& strategy)>;
void run_judged(const StrategyUnderTest& tested, const JudgedProgram& program);

// What each component holds.
ByReplica components_of(Worker& worker, const Variable& variable);

// Gradient descent on (w - 8)^2 / 2 with rate 1/2: each replica has an equal share of the gradient. Returns w after
// each step. With `is_exact` every step is judged, else only the last value, which must be near 8.
struct Descent {
  int steps = 0;
  bool is_exact = false;
};
Numbers descend(Judge& judge, Worker& worker, Strategy& strategy, const Descent& descent);

// Fails at the first call that saw other values than the same call of another run, "in world cpu".
void expect_same_calls(const StrategyUnderTest& tested, const std::string& program, const std::vector<SeenCall>& found,
                       const std::vector<SeenCall>& expected, const std::string& other_run);

}  // namespace tandem
