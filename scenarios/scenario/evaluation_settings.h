// When and on what a job evaluates what it has learned: the `evaluation:` of a scenario. docs/scenarios.md describes
// every key.
//
// Threads: any.
#pragma once

#include <cstdint>

namespace tandem {

struct EvaluationSettings {
  std::int64_t every_steps = 1;
  int passes = 1;  // of one evaluation
  int batch = 1;   // examples of each pass, over all devices that evaluate
  // An evaluator, a worker of its own, takes the newest variables and evaluates while training goes on. Else the
  // workers that train do it, and training waits.
  bool is_beside = false;

  bool is_due(std::int64_t steps_done) const { return steps_done % every_steps == 0; }
};

}  // namespace tandem
