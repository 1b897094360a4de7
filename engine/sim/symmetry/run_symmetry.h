// A run in which some workers represent others: decides who runs, starts the flows of several workers as one, and
// checks that all do the same.
//
// The rest of the engine asks it whether a worker runs, how many calls a call represents, to start the flows of a call,
// and to copy. When several running workers start a flow, each for its image, the first of them starts it, and it ends
// for all. If they do not start it at the same time, they differ.
//
// When flows turn out to meet that were never seen together, the classes of flows under way may change. The run's times
// are then provisional: it goes on for up to two steps only to find more of such meetings, and is repeated.
//
// Called in SimGrid's kernel only (see simulation.h), unless a function says otherwise.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/sim/simulation.h"
#include "engine/sim/symmetry/images.h"
#include "engine/sim/symmetry/symmetry.h"
#include "engine/timeline.h"

namespace tandem::sim {

class CollectiveGroup;
class SimDevice;
class SimRun;

namespace symmetry {

// A flow of a call.
struct PlannedFlow {
  Via via;
  double bytes = 0;
  double most_bytes_per_s = 0;  // 0: as fast as the route is
};

// The flows of a call, as start() needs them.
struct CallFlows {
  int source = -1;
  int pattern = -1;
  int initiator = 0;                               // which of the images that start them together this is
  int initiators = 1;                              // how many start them
  const CollectiveGroup* ring = nullptr;           // whose members start them, those of each image: all send
  std::vector<std::pair<double, double>> sizes{};  // bytes and bound by colour
};

class RunSymmetry {
 public:
  using Then = Simulation::Then;

  RunSymmetry(SimRun& run, Symmetry& state) : run_(run), state_(state) {}

  // Usable from tasks.
  bool runs(int worker) const { return state_.classes().runs(worker); }
  bool runs(int worker, const DeviceId& device) const { return runs(worker) && state_.blocks().place_of(device) == 0; }
  // How many calls of equal groups one call of this group represents.
  int calls_of(const CollectiveGroup& group) { return role_of(group).calls; }

  // `planned` returns the flows of the call if it were one between these devices, by rank: those of the group, then
  // those of each group of images.
  using Planned = std::function<std::vector<PlannedFlow>(std::span<const SimDevice* const> devices)>;
  CallFlows flows_of(const CollectiveGroup& group, const Planned& planned, const FlowPatterns::Routes& route);
  // Starts the flows and calls `then` when all have ended. Needs at least one flow, and at least one byte for each.
  void start(const CallFlows& flows, Then then);
  // Moves bytes between nodes of one worker. Where devices represent others, these copy nothing to the host or to each
  // other: the host gets what only one of them has, such as losses.
  void copy(const SimDevice& from, const SimDevice& to, double bytes, bool with_latency, Then then);
  // Loads bytes for a GPU, and for those that it represents, from the memory of the nearest processor.
  void load(const SimDevice& host, const SimDevice& gpu, double bytes, Then then);
  void store(const SimDevice& gpu, const SimDevice& host, double bytes, Then then);  // the other way
  // Moves bytes between the two devices of a pair.
  void send(const CollectiveGroup& pair, double bytes, Then then);

  // Whether the times of the run are to be thrown away.
  bool is_provisional() const { return is_provisional_; }
  // A worker begins a step. Usable from tasks.
  void begin_step(int step);

  // Ends the run; the next one runs every worker. Usable from tasks.
  void give_up(const std::string& why);

  // Counts the bytes of all flows, also those that were not simulated because others represented them, on the links of
  // the fabric and of the machines whose workers represent others. Called once, at the end of the run.
  void count_links() const;

  // Removes the witnesses' records from the timeline of a run that has ended, and adds the classes. Throws Again if a
  // witness did anything else than the worker that represents it; the next run then has smaller classes.
  void finish(Timeline& timeline);

 private:
  struct Role {
    std::vector<int> classes{};  // the classes whose members fall into such groups; empty: there is this group only
    Images images{};             // the groups
    int number = 0;              // of this group among them
    int calls = 1;
    Images parts{};  // the groups of images of its devices, in each block, of which it is the first
    int source = -1;
  };
  // Flows under way.
  struct MergedCall {
    double began_s = 0;
    CallFlows flows;
    std::shared_ptr<const ClassFlows> shown{};  // to SimGrid; null: not yet
    std::size_t left = 0;
    std::vector<int> joined{};  // initiators
    std::vector<Then> then{};
  };
  struct Source {
    std::map<int, std::uint64_t> begun{};  // by initiator
    std::uint64_t created = 0;
    std::map<std::uint64_t, std::shared_ptr<MergedCall>> under_way{};  // by number
  };

  const Role& role_of(const CollectiveGroup& group);
  Role find_role(const CollectiveGroup& group);
  Role role_in_ring(const CollectiveGroup& pair);
  // Returns the members of each group of images, by rank: of a pair in a ring, those of each pair.
  std::vector<std::vector<const SimDevice*>> equal_groups(const CollectiveGroup& group, const Images& parts) const;
  void set_initiators_in_ring(const CollectiveGroup& pair, const Role& role, CallFlows& flows) const;
  // Ends the run; in the next one, members at different places in the ring run, or more of their devices.
  void give_up(const CollectiveGroup& ring);
  // Returns the groups of images of its devices into which blocks fall: one if they are all in it. Gives up these
  // blocks of devices where groups do not divide them equally.
  Images parts_of(const CollectiveGroup& group);
  void shrink_blocks();
  // Moves bytes from `from` to `to`, and between as many more pairs of nodes.
  using Ends = std::pair<NodeIndex, NodeIndex>;
  void copy_along(const SimDevice& device, std::span<const Ends> ways, double bytes, bool with_latency, Then then);
  int number_of_source(const CollectiveGroup& group, const Role& role, int ring_step = 0);
  void start_new(Source& source, std::uint64_t number, const CallFlows& flows, Then then);
  void show_all();
  void show(Source& source, std::uint64_t number);
  void join(MergedCall& merged, const CallFlows& flows, Then then);
  void end(Source& source, std::uint64_t number);
  bool bring_up_to_date();
  void repeat();
  int running_of(int index, const Images& images) const;  // how many images have members of the class that run

  // The records of each running worker, in their order.
  using RecordsOf = std::map<int, std::vector<const Record*>>;
  // Splits the classes of a source, some of whose initiators (`others`) did not do the same as those left.
  void differ(const CallFlows& flows, const std::vector<int>& others, const std::string& what);
  // Splits classes whose running members have different records. Returns whether there are any.
  bool split_by_records(const Timeline& timeline);
  std::vector<std::uint32_t> parts_by_records(int index, const RecordsOf& records, std::string& why) const;
  std::string difference(int worker, int witness, const RecordsOf& records) const;
  // Returns the class, and those whose members are in one group with its members.
  std::vector<int> companions_of(int index) const;

  SimRun& run_;
  Symmetry& state_;
  std::unordered_map<const CollectiveGroup*, Role> roles_;
  std::map<std::pair<NodeIndex, NodeIndex>, CallFlows> copies_;
  std::map<int, Source> sources_;
  std::map<std::pair<int, int>, std::map<std::uint32_t, double>> carried_;  // by source and pattern, then by colour
  std::set<int> under_way_;                                                 // sources with flows under way
  std::vector<std::pair<Source*, std::uint64_t>> unshown_;  // calls, because the flows must be divided first
  bool is_provisional_ = false;
  std::optional<int> provisional_step_;  // the first that began with provisional times
};

}  // namespace symmetry
}  // namespace tandem::sim
