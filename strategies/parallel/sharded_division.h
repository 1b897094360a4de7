// Fully sharded data parallelism (ZeRO stage 3, arXiv:1910.02054): every device computes its rows of the batch, and has
// its piece of all parameters.
#pragma once

#include "strategies/parallel/division.h"

namespace tandem {

class ShardedDivision final : public Division {
 public:
  std::optional<DivisionProblem> problem(const DivisionRequest& request) const override;
  std::vector<DeviceShare> shares(const DivisionRequest& request) const override;
  std::vector<std::int64_t> kind_of(int rank, const ParallelOptions& options) const override;
  int alike_neighbours(const DivisionRequest& request) const override;
  bool evaluates() const override { return true; }
  std::unique_ptr<DividedTraining> train(Worker& worker, TrainableModel& model,
                                         const ParallelOptions& options) const override;
};

}  // namespace tandem
