// A training program that uses a strategy. It cannot tell on which engine it runs.
//
// Used within one worker's program: make_workload(), then prepare() once, run_step() for every step, finish() at the
// end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/worker.h"
#include "reports/run/report.h"
#include "scenarios/scenario/scenario.h"
#include "scenarios/workloads/evaluation.h"
#include "strategies/strategy/strategy.h"

namespace tandem {

class Workload {
 public:
  virtual ~Workload() = default;
  virtual void prepare() = 0;           // makes variables, data and scratch memory, as a script does before its loop
  virtual void run_step(int step) = 0;  // issues one step; does not wait for it
  // Reports what was learned, after the last step. `carries_values` is whether tensors hold data on this engine.
  virtual void finish(Report& report, bool carries_values) = 0;
  virtual std::string throughput_unit() const = 0;  // "examples/s"

  // Says what evaluate() is to do. Called before prepare().
  void evaluates(const EvaluationSettings& settings) { evaluation_ = settings; }
  // Issues an evaluation on all workers that train, between two steps; does not wait for it. Returns what it adds up,
  // on the worker's CPU; may be empty where values mean nothing.
  virtual Tensor evaluate();
  // Returns how many examples that has, where values mean something; else 0.
  virtual std::int64_t evaluated_examples() const { return 0; }
  // Returns the variables as they are between two steps, on the worker's CPU, for an Evaluator. Later steps leave these
  // tensors as they are once the worker's devices have been synchronised.
  virtual std::vector<Tensor> variables();

 protected:
  const std::optional<EvaluationSettings>& evaluation() const { return evaluation_; }

 private:
  std::optional<EvaluationSettings> evaluation_{};
};

// What a worker does between steps, beside its training; see scenarios/run/evaluations_of_job.h.
class BetweenSteps {
 public:
  virtual ~BetweenSteps() = default;
  virtual void begin() = 0;              // before the first step
  virtual void step_done(int done) = 0;  // so many are done
};

// Returns the sum of the elements (f32 or f64) of a tensor in host memory, such as the parts of a loss.
float sum_of_elements(const Tensor& tensor);

std::unique_ptr<Workload> make_workload(const WorkloadSettings& settings, Strategy& strategy);

// Trains from prepare() to finish(). Worker 0 calls `progress`, which may be empty, after each step. `between` may be
// null.
void train_steps(Workload& workload, Worker& worker, int steps,
                 const std::function<void(int step, int steps)>& progress, Report& report,
                 BetweenSteps* between = nullptr);

}  // namespace tandem
