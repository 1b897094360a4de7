// Ops of one stream that are held back, to be launched together.
#pragma once

#include <utility>
#include <vector>

#include "engine/cuda/device/launch_graphs.h"
#include "engine/cuda/device/op_identity.h"
#include "engine/op.h"

namespace tandem::cuda {

// A batch leaves one record, so all its ops have one category and step.
class OpBatch {
 public:
  bool takes(const Op& op, int step) const {
    return ops_.empty() || (step == step_ && op.category == ops_.front().category);
  }
  void add(Op op, int step) {
    add_identity(series_.shape, series_.addresses, op);
    ++series_.launches;
    bytes_ += op.cost.bytes;
    flops_ += op.cost.flops;
    step_ = step;
    ops_.push_back(std::move(op));
  }

  bool is_empty() const { return ops_.empty(); }
  std::size_t size() const { return ops_.size(); }
  const LaunchSeries& series() const { return series_; }
  int step() const { return step_; }
  double bytes() const { return bytes_; }
  double flops() const { return flops_; }
  std::vector<Op> take_ops() { return std::move(ops_); }

 private:
  std::vector<Op> ops_;
  LaunchSeries series_;
  int step_ = 0;
  double bytes_ = 0, flops_ = 0;
};

}  // namespace tandem::cuda
