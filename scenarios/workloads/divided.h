// The training of a model by a strategy that divides it, as a workload.
#pragma once

#include <memory>

#include "scenarios/workloads/workload.h"
#include "strategies/parallel/division.h"

namespace tandem {

class DividedWorkload final : public Workload {
 public:
  // `division` outlives the workload.
  DividedWorkload(Worker& worker, std::unique_ptr<TrainableModel> model, const Division& division,
                  const ParallelOptions& options);

  // After the last step, finish() computes the accuracy of a perceptron on the test rows of this data set, in a run of
  // one worker; no worker has all parameters otherwise.
  void evaluate_on(std::shared_ptr<const LabelledRows> rows) { rows_ = std::move(rows); }

  void prepare() override;
  void run_step(int step) override;
  // Reports how many parameters the device with most of them has, the largest memory that a device of this worker used
  // and, with values, what the model learned.
  void finish(Report& report, bool carries_values) override;
  std::string throughput_unit() const override { return model_->model().unit + "/s"; }
  Tensor evaluate() override;

 private:
  double test_accuracy();

  Worker& worker_;
  std::unique_ptr<TrainableModel> model_;
  const Division& division_;
  ParallelOptions options_;
  std::shared_ptr<const LabelledRows> rows_{};
  std::unique_ptr<DividedTraining> training_{};
  std::size_t steps_ = 0;
};

}  // namespace tandem
