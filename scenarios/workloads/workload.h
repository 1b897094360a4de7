// A training program that uses a strategy. It cannot tell on which engine it runs.
//
// Used within one worker's program: make_workload(), then prepare() once, run_step() for every step, finish() at the
// end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/worker.h"
#include "reports/run/report.h"
#include "scenarios/scenario/scenario.h"
#include "scenarios/workloads/evaluation.h"
#include "strategies/strategy/strategy.h"

namespace tandem {

class Checkpoint;

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

  // Adds all that later steps and finish() depend on, so that another run can go on from it. Called after prepare().
  virtual void add_to(Checkpoint& checkpoint);  // NotImplementedError: where it cannot
  // Called instead of the first steps, which another run has taken, after that was restored.
  virtual void pass_over(int /*steps*/) {}

 protected:
  const std::optional<EvaluationSettings>& evaluation() const { return evaluation_; }

 private:
  std::optional<EvaluationSettings> evaluation_{};
};

// The losses of the steps so far, which a checkpoint keeps.
class StepLosses {
 public:
  using Of = std::function<float(const Tensor& parts)>;
  explicit StepLosses(Of of) : of_(std::move(of)) {}

  // A tensor on the worker's CPU; what it holds counts once the devices were synchronised.
  void add(Tensor parts) { parts_.push_back(std::move(parts)); }
  std::vector<float> all() const;
  void add_to(Checkpoint& checkpoint);  // which must not outlive this

 private:
  Of of_;
  std::vector<float> earlier_{};  // of other runs
  std::vector<Tensor> parts_{};
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

}  // namespace tandem
