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

  // Adds all that later steps and finish() depend on, so that another run can go on from it. Called after prepare().
  virtual void add_to(Checkpoint& checkpoint);  // NotImplementedError: where it cannot
  // Called instead of the first steps, which another run has taken, after that was restored.
  virtual void pass_over(int /*steps*/) {}
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

// Returns the sum of the elements (f32 or f64) of a tensor in host memory, such as the parts of a loss.
float sum_of_elements(const Tensor& tensor);

std::unique_ptr<Workload> make_workload(const WorkloadSettings& settings, Strategy& strategy);

// Where a run saves checkpoints, from which the next run goes on if this one does not come to its end.
struct StepCheckpoints {
  std::string directory{};
  std::int64_t every = 1;     // steps
  std::int64_t training = 0;  // a hash of what is trained
};

// Trains from prepare() to finish(). Worker 0 calls `progress`, which may be empty, after each step. With checkpoints,
// the first step is the one after the last that was saved, and at the end they are deleted.
void train_steps(Workload& workload, Worker& worker, int steps,
                 const std::function<void(int step, int steps)>& progress, Report& report,
                 const std::optional<StepCheckpoints>& checkpoints = std::nullopt);

}  // namespace tandem
