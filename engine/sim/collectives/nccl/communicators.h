// The NCCL communicators of the groups of GPUs of one topology, each modelled once.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/sim/collectives/nccl/plan.h"
#include "engine/sim/collectives/nccl/surveyor.h"

namespace tandem::sim::nccl {

class Communicators {
 public:
  // The topology and its router must outlive it.
  Communicators(const Topology& topology, Router& router, Settings settings)
      : topology_(topology), router_(router), settings_(settings) {}

  const Settings& settings() const { return settings_; }
  // `gpus`: at least one, all different. Throws tandem::Error where two of them have no path, and InputError where the
  // settings leave NCCL nothing to choose.
  const Communicator& of(const std::vector<NodeIndex>& gpus) {
    if (!surveyor_) surveyor_ = std::make_unique<Surveyor>(topology_, router_);
    std::unique_ptr<const Communicator>& known = known_[gpus];
    if (!known) known = std::make_unique<const Communicator>(surveyor_->survey(gpus), settings_);
    return *known;
  }

 private:
  const Topology& topology_;
  Router& router_;
  Settings settings_;
  std::unique_ptr<const Surveyor> surveyor_;  // null until used
  std::map<std::vector<NodeIndex>, std::unique_ptr<const Communicator>> known_;
};

}  // namespace tandem::sim::nccl
