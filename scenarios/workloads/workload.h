// A training program that uses a strategy. It cannot tell on which engine it runs.
//
// Used within one worker's program: make_workload(), then prepare() once, run_step() for every step, finish() at the
// end.
#pragma once

#include <functional>
#include <memory>

#include "engine/worker.h"
#include "reports/run/report.h"
#include "scenarios/scenario/scenario.h"
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
};

// Returns the sum of the elements (f32 or f64) of a tensor in host memory, such as the parts of a loss.
float sum_of_elements(const Tensor& tensor);

std::unique_ptr<Workload> make_workload(const WorkloadSettings& settings, Strategy& strategy);

// Trains from prepare() to finish(). Worker 0 calls `progress`, which may be empty, after each step.
void train_steps(Workload& workload, Worker& worker, int steps,
                 const std::function<void(int step, int steps)>& progress, Report& report);

}  // namespace tandem
