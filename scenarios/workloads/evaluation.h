// The evaluation of a workload's variables: forward passes alone, whose results are added up.
//
// Threads: the worker's task.
#pragma once

#include <memory>
#include <vector>

#include "engine/worker.h"
#include "scenarios/scenario/scenario.h"
#include "strategies/parallel/divided_training.h"

namespace tandem {

// What evaluations add up is a tensor of kEvaluationSums f32 elements: the losses of the examples, and how many of them
// are classified right. It has no meaning for workloads without values.

// Evaluates on a worker that does not train, with variables that it is given.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Evaluates these variables, those of Workload::variables(), which are on any device of the job. Returns the sums, on
  // the worker's CPU, once all its devices are done.
  virtual Tensor evaluate(const std::vector<Tensor>& variables) = 0;
  // Returns how many examples an evaluation has, where values mean something; else 0.
  virtual std::int64_t examples() const = 0;
};

std::unique_ptr<Evaluator> make_evaluator(const WorkloadSettings& workload, const EvaluationSettings& settings,
                                          Worker& worker);

}  // namespace tandem
