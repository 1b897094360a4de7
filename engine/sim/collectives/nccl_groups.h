// Models NCCL on the groups of a run: plans each call, and executes it over the links of the topology.
//
// Called in SimGrid's kernel only (see simulation.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/collective_fit.h"
#include "engine/sim/base/notes.h"
#include "engine/sim/collectives/collective_call.h"
#include "engine/sim/collectives/nccl/communicators.h"
#include "engine/sim/network.h"
#include "engine/sim/symmetry/run_symmetry.h"

namespace tandem::sim {

namespace steps {
struct PlacedGraph;
class StepPlayer;
}  // namespace steps

class NcclGroups {
 public:
  // `variables`: EngineOptions::nccl, with which the communicators were made. All arguments must outlive it.
  NcclGroups(const Topology& topology, const std::map<std::string, std::string>& variables,
             nccl::Communicators& communicators);
  ~NcclGroups();
  NcclGroups(const NcclGroups&) = delete;
  NcclGroups& operator=(const NcclGroups&) = delete;

  // Whether NCCL executes the collectives of a group: its devices are GPUs of known architecture, each a physical GPU
  // of its own.
  bool executes(const CollectiveGroup& group);

  // Lets a rank begin with its part of a call at this date, which is not past, even if others have yet to come: with
  // `message`. Returns what executes the call, to be passed in for its other ranks; null if it begins when all have
  // come. Throws what start() does.
  std::shared_ptr<steps::StepPlayer> begin_part(SimRun& run, const CollectiveCall& call, int rank, double date_s,
                                                std::shared_ptr<steps::StepPlayer> begun);
  // Starts the call, of which all ranks have come, and returns what NCCL has chosen for it. Throws InputError where
  // NCCL's variables leave no choice, and tandem::Error where two GPUs have no path.
  std::string start(SimRun& run, const CollectiveCall& call, Simulation::Then then);

  bool was_used() const { return was_used_; }
  // Adds the variables and the figures of the topology that have decided anything so far, as Timeline::consulted names
  // them.
  void add_consulted(std::set<std::string>& inputs) const;
  void forget_consulted();
  std::string text() const;  // for the report: "model of 2.30.7, from links and public constants; NCCL_ALGO=ring"

 private:
  // A plan on the nodes of the topology.
  struct Playable {
    std::string algorithm;
    double fixed_s = 0;
    double transfer_s = 0;
    std::vector<Network::Flow> flows;  // none where workers represent others
    symmetry::CallFlows class_flows{};
    std::shared_ptr<const steps::PlacedGraph> steps{};  // null: the flows
    bool has_flows() const { return !flows.empty() || class_flows.source >= 0; }
  };
  struct Group;
  using Key = std::tuple<CollectiveKind, double, int, bool>;  // bytes, root, whether switches reduce the element type
  using ViaNics = std::tuple<NodeIndex, NodeIndex, NodeIndex, NodeIndex>;

  Group& group_of(const CollectiveGroup& group);
  const nccl::Communicator& communicator_of(Group& group);
  // Returns NCCL on this many GPUs of this many machines of the topology, for what was measured on them; null if it has
  // fewer.
  const nccl::Communicator* communicator_of(int devices, int nodes);
  const CollectiveFit* fit_of(SimRun& run, Group& group, CollectiveKind kind, bool reduces);
  // Multiplies the times of a plan, so that the call takes the measured time where nothing else is on its links.
  void fit_to_measured(SimRun& run, Group& group, const CollectiveCall& call, bool reduces, nccl::Plan& plan);
  std::shared_ptr<const Playable> plan_of(SimRun& run, Group& group, const CollectiveCall& call);
  Playable playable(SimRun& run, const CollectiveCall& call, Group& group, const nccl::Plan& plan, const Key& key);
  // Returns null, with a note that says why, where the steps of a call cannot be simulated.
  std::shared_ptr<const steps::PlacedGraph> steps_of(SimRun& run, const Group& group, const nccl::Call& call, int root,
                                                     const nccl::Plan& plan);
  // Needs a plan whose flows include all kinds.
  symmetry::CallFlows class_flows(SimRun& run, const CollectiveCall& call, Group& group, const nccl::Plan& plan,
                                  const Key& key);
  bool is_of_nic(LinkIndex index) const;
  // Finds out which variables this call depends on, by plans without them.
  void see_variables(SimRun& run, const Group& group, const nccl::Call& call, int root, const nccl::Plan& plan);
  static std::vector<symmetry::PlannedFlow> planned_flows(const std::vector<NodeIndex>& gpus, const nccl::Plan& plan);
  static void append_route(SimRun& run, const symmetry::Via& via, Route& into);
  Network::RoutePtr route(SimRun& run, const symmetry::Via& via);
  static void play(SimRun& run, const Playable& plan, const Simulation::Then& then);

  const Topology& topology_;
  const std::map<std::string, std::string>& variables_;
  nccl::Communicators& communicators_;
  bool was_used_ = false;
  std::map<const CollectiveGroup*, std::unique_ptr<Group>> groups_;
  std::map<ViaNics, Network::RoutePtr> routes_;
  std::map<std::pair<int, int>, const nccl::Communicator*> measured_;  // by devices and nodes
  std::size_t kept_flows_ = 0;                                         // in the plans of all groups
  // By a variable on which no plan has depended yet: NCCL without it.
  std::map<std::string, std::unique_ptr<nccl::Communicators>> without_;
  bool has_calls_ = false, crosses_machines_ = false;  // since forget_consulted()
  bool heeds_plug_in_ = false;  // some choice depends on the latency that the network's plug-in states
};

}  // namespace tandem::sim
