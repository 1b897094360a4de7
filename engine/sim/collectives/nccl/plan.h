// Plans a call as the simulation executes it: a fixed time, followed by flows over the links.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/sim/collectives/nccl/mechanism.h"
#include "engine/sim/collectives/nccl/survey.h"

namespace tandem::sim::nccl {

inline constexpr NodeIndex kNoNic = std::numeric_limits<NodeIndex>::max();

// Bytes from one GPU to another, both given by their positions in the surveyed list.
struct Flow {
  int from = 0;
  int to = 0;
  double bytes = 0;
  NodeIndex from_nic = kNoNic;  // through these, where they are known
  NodeIndex to_nic = kNoNic;
};

struct Plan {
  std::string algorithm;  // "ring LL128, 24 channels"
  double fixed_s = 0;
  double transfer_s = 0;  // of every flow, if nothing else uses its links
  std::vector<Flow> flows;
  // Plans of one communicator and one form have flows between the same ends in the same order.
  std::vector<int> form;
};

// first_of_a_kind: only the flows of the first domain with each number of GPUs and ports. Those of the others have
// equal bytes.
enum class Flows : std::uint8_t { all, first_of_a_kind };

// NCCL on one group of GPUs.
class Communicator {
 public:
  // Throws InputError where the settings leave NCCL nothing to choose.
  Communicator(Survey survey, const Settings& settings);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // `root` is a position, for calls that have a root.
  Plan plan(const Call& call, int root = 0, Flows flows = Flows::all) const;
  // What plan() plans for a collective that is not made of sends and receives, and the model of its steps.
  Choice choose(const Call& call) const { return table_.choose(call); }
  // Whether NCCL would choose otherwise if the network's plug-in stated no latency.
  bool heeds_plug_in(const Call& call) const;
  const Mechanism& mechanism() const { return mechanism_; }
  const Graphs& graphs() const { return graphs_; }
  const Survey& facts() const { return survey_; }

 private:
  // What crosses links in a call: bytes out of a GPU to its neighbours in the domain, and out of a domain.
  struct Traffic {
    double inside = 0;
    double between = 0;
  };
  Traffic traffic(const Choice& choice, const Call& call) const;
  void add_inside(const Traffic& traffic, int nics, Flows which, Plan& plan) const;
  void add_inside(const Traffic& traffic, const std::vector<int>& gpus, std::vector<Flow>& flows) const;
  bool joins_chains(std::size_t domain) const;
  std::size_t ends_of(std::size_t domain, int nics) const;
  const Port& end_at(std::size_t domain, std::size_t i, std::size_t ends) const;
  int last_of_chain(std::size_t domain, const Port& port) const;
  void add_chains(const Traffic& traffic, std::size_t domain, std::size_t ends, std::vector<Flow>& flows) const;
  void add_between(const Traffic& traffic, int nics, bool chained, Flows which, Plan& plan) const;
  void add_pairs(double bytes, std::vector<Flow>& flows) const;
  void add_chain(double bytes, CollectiveKind kind, int root, std::vector<Flow>& flows) const;
  Plan plan_all_to_all(const Call& call, Flows which) const;
  std::string text(const Choice& choice) const;

  Survey survey_;
  Settings settings_;
  Graphs graphs_;
  CostTable table_;
  Mechanism mechanism_;
};

}  // namespace tandem::sim::nccl
