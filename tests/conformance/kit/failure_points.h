// Repeats runs of a strategy with a failure at each point where one can come: a worker that is lost before each call
// that gives work to its devices or waits for it, an exception in each function that a call was given, a device that is
// slow in each op. Each run must end, and must come to what docs/faults.md promises.
//
// TANDEM_FAILURE_SEEDS=N draws N programs in each world and size, and tries every point; otherwise it is one program,
// and a few of its points. TANDEM_FAILURE_SEED=S begins with another seed.
#pragma once

#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {

// Each fails the test at the first point that does not come to what it must, with what reproduces it.

// A lost worker ends the run with the UnavailableError that names it, on every worker that notices; what was seen
// before are the values of the undisturbed run.
void expect_lost_workers_to_end_runs(const StrategyUnderTest& tested);

// The exception of a function reaches the caller, once. On one worker the strategy is usable afterwards, and no
// mirrored variable has components that differ; on several workers it ends the run.
void expect_exceptions_to_reach_callers(const StrategyUnderTest& tested);

// Slow devices, slow links and times that vary change no value.
void expect_slow_devices_to_change_no_value(const StrategyUnderTest& tested);

// Training that saves each step is lost, and begun again from its last checkpoint: every step is done exactly once.
void expect_training_to_resume(const StrategyUnderTest& tested);

// Which seeds and points are tried.
struct FailurePoints {
  int first_seed = 1, seeds = 1;
  int stride = 1;  // of the points, 0, stride, 2 * stride, ...

  // `few`: the stride where the environment asks for no more.
  static FailurePoints asked(int few);
};

}  // namespace tandem
