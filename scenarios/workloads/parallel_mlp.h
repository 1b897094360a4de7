// The perceptron of MlpWorkload, trained by a strategy that divides the model, with the same rows in the same order,
// the same initial weights and the same loss.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scenarios/workloads/workload.h"
#include "strategies/input/dataset.h"
#include "strategies/parallel/trainer.h"
#include "strategies/strategies.h"

namespace tandem {

class ParallelMlpWorkload final : public Workload {
 public:
  ParallelMlpWorkload(const MlpSettings& settings, Worker& worker, const ParallelOptions& options,
                      TrainerFactory make_trainer);

  void prepare() override;
  void run_step(int step) override;
  // Reports the largest memory that a device of this worker used and, with values, losses and accuracy.
  void finish(Report& report, bool carries_values) override;
  std::string throughput_unit() const override { return "examples/s"; }

 private:
  double test_accuracy();

  MlpSettings settings_;
  Worker& worker_;
  ParallelOptions options_;
  TrainerFactory make_trainer_;
  LabelledRows test_;
  std::unique_ptr<ParallelTrainer> trainer_;
  std::optional<Dataset> dataset_;
  std::optional<DatasetIterator> iterator_;
  std::vector<Tensor> losses_;  // the parts of each step's loss, on the host's device
};

// Returns the largest memory that a device of this worker has used, in bytes.
double memory_peak_bytes(const Worker& worker);

}  // namespace tandem
