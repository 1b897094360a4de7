// The transfers of a simulation: bytes over the routes of its topology. Transfers share the links that they cross
// evenly.
//
// At the end of each flow, SimGrid 3.32 spends time proportional to the number of flows under way, so the 16,384 flows
// of a ring would cost seconds. Equal flows that share no link, with each other or with anything else, end at the same
// instant; such a *bundle* is therefore simulated by its first flow alone, for as long as that holds:
//
//   state       what SimGrid sees        leaves it when
//   bundled     the first flow           it ends: all flows of the bundle have ended
//                                        another transfer comes to a link of any of its flows: dissolved
//   dissolved   every flow, with the     each ends by itself
//               bytes it had left
//
// Equal flows over one route, as those between the many processes of two machines, are one flow with their bytes that
// has as many shares of its links as they. It is exact: such flows have equal rates at all times, whatever else is
// under way.
//
// Nothing is bundled or made one where machines send to each other in turn, because flows without a common link may
// then share a rate, nor where transfers have weights. A weight is drawn for each transfer, in the order in which they
// start. Nor are flows bundled that cross a link whose rate changes, or whose times vary.
//
// A flow may have a rate that it does not exceed even where it is alone, such as that of the thread blocks that copy.
//
// A transfer dissolves the bundles on its route before it starts, so bundling changes no time. Called in SimGrid's
// kernel only (see simulation.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/sim/base/sparse_vector.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

class FaultClock;

class Network {
 public:
  using Then = Simulation::Then;
  using Pair = std::pair<NodeIndex, NodeIndex>;  // from and to, two different nodes
  using RoutePtr = std::shared_ptr<const Route>;

  // `faults`: of the run, which must outlive it; null: none.
  explicit Network(Simulation& simulation, FaultClock* faults = nullptr);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Moves bytes between two different nodes; the latency of the route passes first unless `with_latency` is false.
  // Throws RunError where there is no route.
  void transfer(NodeIndex from, NodeIndex to, double bytes, bool with_latency, Then then);
  // Does the same over a route that may begin or end elsewhere; `hosts` are two nodes of running workers.
  void transfer_over(RoutePtr route, Pair hosts, double bytes, bool with_latency, Then then);
  // Moves the same number of bytes, greater than 0, without latency between each of these pairs. Calls `each` at the
  // end of every transfer.
  void transfer_together(std::span<const Pair> pairs, double bytes, const Then& each);

  // Bytes, greater than 0, over a route between two different nodes.
  struct Flow {
    Pair pair;
    RoutePtr route;
    double bytes = 0;
    double most_bytes_per_s = 0;  // 0: as fast as the route is
    int count = 1;                // of equal flows, each of so many bytes and with that bound
    double alone_bytes_per_s() const {
      const double share_bytes_per_s = route->bandwidth_bytes_per_s / count;
      return most_bytes_per_s > 0 ? std::min(most_bytes_per_s, share_bytes_per_s) : share_bytes_per_s;
    }
  };
  // Starts all of these flows without latency. Calls `each` at the end of every flow, `count` times. `counts`: whether
  // links carry them; false if they represent others, and the caller counts all of them with carry().
  void start_together(std::vector<Flow> flows, const Then& each, bool counts = true);
  // Notes that a link has carried bytes in one direction (Platform::direction_index).
  void carry(std::size_t direction, double bytes) {
    Carried& carried = carried_[direction];
    carried.bytes += bytes;
    carried.is_consulted = true;
  }

  // Returns what the links have carried so far, by link and direction.
  std::vector<LinkUse> link_use() const;
  // Adds the figures of links that have decided a time so far, as Timeline::consulted names them, since the last
  // forget_consulted().
  void add_consulted(std::set<std::string>& inputs) const;
  void forget_consulted();

 private:
  struct Carried {
    double bytes = 0;           // 0 for flows that represent others
    bool is_consulted = false;  // since the last forget_consulted()
  };
  struct Bundle {
    std::vector<Flow> flows;
    Then each;
    Simulation::Activity* flow = nullptr;  // the first; null once ended or dissolved
    std::size_t ended = 1;                 // flows that end with the first: it alone once dissolved
  };
  using BundlePtr = std::shared_ptr<Bundle>;

  void start_weighted(Flow flow, Then then);
  int next_weight();
  Simulation::Activity& start_flow(const Flow& flow, Then then);
  void start_bundle(const BundlePtr& bundle);
  void end_bundle(const BundlePtr& bundle);
  void dissolve(const BundlePtr& bundle);
  void dissolve_bundles_on(const Route& route);
  bool is_alone(const Flow& flow) const;
  static std::vector<Flow> with_equal_ones_joined(std::vector<Flow> flows);
  void count(const Route& route, double bytes);
  void occupy(const Route& route, int flows);
  void mark(const Route& route, const BundlePtr& bundle);

  Simulation& simulation_;
  Platform& platform_;
  FaultClock* const faults_;
  SparseVector<std::int32_t> flows_on_;               // by Platform::direction_index
  SparseVector<BundlePtr> bundle_on_;                 // likewise; bundled ones only
  const bool bundles_;                                // whether equal flows are bundled at all
  std::mt19937_64 random_;                            // of weights
  std::unordered_map<std::size_t, Carried> carried_;  // by Platform::direction_index
};

}  // namespace tandem::sim
