// Reads from a topology what decides how NCCL runs on a group of its GPUs.
#pragma once

#include <memory>
#include <span>

#include "engine/sim/collectives/nccl/survey.h"
#include "topologies/routing.h"
#include "topologies/topology.h"

namespace tandem::sim::nccl {

class DomainMap;

// Surveys many groups of one topology, at which it looks once. The topology and its router must outlive it.
class Surveyor {
 public:
  Surveyor(const Topology& topology, Router& router);
  ~Surveyor();
  Surveyor(const Surveyor&) = delete;
  Surveyor& operator=(const Surveyor&) = delete;

  // `gpus`: at least one, all different. Throws tandem::Error where two of them have no path.
  Survey survey(std::span<const NodeIndex> gpus) const;

 private:
  const Topology& topology_;
  std::unique_ptr<DomainMap> map_;
};

}  // namespace tandem::sim::nccl
