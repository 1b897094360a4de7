// What is trained: a training program written on a strategy, which cannot tell the world it runs in.
//
// Use within one worker's program: make_workload, then prepare() once, run_step() for every step, finish() at the end.
#pragma once

#include <functional>
#include <memory>

#include "engine/worker.h"
#include "reports/report.h"
#include "scenarios/scenario.h"
#include "strategies/base/strategy.h"

namespace tandem {

class Workload {
 public:
  virtual ~Workload() = default;
  virtual void prepare() = 0;           // variables, data, scratch memory: what a training script does before its loop
  virtual void run_step(int step) = 0;  // issues one step; does not wait for it
  // When every step is done: what was learned. `carries_values`: whether tensors hold data here.
  virtual void finish(Report& report, bool carries_values) = 0;
  virtual std::string throughput_unit() const = 0;  // "examples/s"
};

std::unique_ptr<Workload> make_workload(const WorkloadSettings& settings, Strategy& strategy);

// Trains from prepare() to finish(). `progress`, which may be empty, is called by worker 0 after each step.
void train_steps(Workload& workload, Worker& worker, int steps,
                 const std::function<void(int step, int steps)>& progress, Report& report);

}  // namespace tandem
