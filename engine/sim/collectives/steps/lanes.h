// The ways that the channels of a communicator take, as the flows of its plans show them: each way, a *lane*, stands
// for the channels that pass the same GPUs and NICs.
#pragma once

#include <vector>

#include "engine/sim/collectives/nccl/plan.h"
#include "engine/sim/collectives/steps/step_graph.h"

namespace tandem::sim::steps {

// A closed way through all GPUs: GPU i sends over edge i, between domains by the NIC of the lane.
struct Ring {
  std::vector<int> gpus{};
  std::vector<Edge> edges{};
};

class Lanes {
 public:
  // A plan of a collective of this communicator, with all flows. The communicator must outlive it.
  Lanes(const nccl::Communicator& communicator, const nccl::Plan& plan);

  // False where the plan lacks a way between two domains; then there are no lanes.
  bool is_complete() const { return !chains_.empty(); }
  int count() const { return count_; }
  int domains() const { return static_cast<int>(chains_.size()); }
  // The GPUs of a domain in the order in which a lane passes them, beginning with the one at which it enters.
  const std::vector<int>& chain(int lane, int domain) const {
    return chains_[static_cast<std::size_t>(domain)][static_cast<std::size_t>(lane)];
  }
  Ring ring(int lane) const;
  // The way of a lane from one domain to another.
  Edge between(int lane, int from, int to) const;
  // The share of a plan's copying time that copies of this lane's ring take: plans count with the slowest NIC of a
  // domain, which other lanes do not pass. 1: it passes it, or all NICs are alike.
  double copy_share(int lane) const;

 private:
  std::vector<int> chain_of(int lane, int domain) const;
  const std::vector<nccl::Flow>& hops(int from) const { return hops_[static_cast<std::size_t>(from)]; }

  const nccl::Communicator& communicator_;
  std::vector<std::vector<nccl::Flow>> hops_;  // by domain, from it to the next one
  int count_ = 1;
  std::vector<std::vector<std::vector<int>>> chains_;  // by domain and lane
};

}  // namespace tandem::sim::steps
