// The transfers of a simulation: bytes over the routes of its topology, which share the links they cross evenly.
//
// SimGrid 3.32 spends time proportional to the number of flows under way on the end of each, so that the 16,384 flows
// of a ring would cost seconds. Equal flows that share no link, with each other or with anything else, end at the same
// instant; such a *bundle* is therefore simulated by its first flow alone, for as long as that holds:
//
//   state       what SimGrid sees        leaves it when
//   bundled     the first flow           it ends: all flows of the bundle have ended
//                                        another transfer comes to a link of any of its flows: dissolved
//   dissolved   every flow, with the     each ends by itself
//               bytes it had left
//
// A transfer dissolves the bundles on its route before it starts, so bundling changes no time.
// Like Simulation, this is for SimGrid's kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/sim/simulation.h"

namespace tandem::sim {

class Network {
 public:
  using Then = Simulation::Then;
  using Pair = std::pair<NodeIndex, NodeIndex>;  // from and to, two different nodes

  explicit Network(Simulation& simulation);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Moves bytes between two different nodes; the latency of the route passes first unless `with_latency` is false.
  // Throws RunError where there is no route.
  void transfer(NodeIndex from, NodeIndex to, double bytes, bool with_latency, Then then);
  // Moves the same number of bytes, greater than 0 and without latency, between each of these pairs, and calls `each`
  // for every one of them.
  void transfer_together(std::span<const Pair> pairs, double bytes, const Then& each);

  std::uint64_t transfer_count() const { return transfers_; }  // that SimGrid has seen or that a bundle stood for

 private:
  using RoutePtr = std::shared_ptr<const Route>;
  struct Bundle {
    std::vector<Pair> pairs;
    std::vector<RoutePtr> routes;
    Then each;
    Simulation::Activity* flow = nullptr;  // of the first pair; null once ended or dissolved
  };
  using BundlePtr = std::shared_ptr<Bundle>;

  Simulation::Activity& start_flow(const Pair& pair, double bytes, RoutePtr route, Then then);
  void start_bundle(const BundlePtr& bundle, double bytes);
  void end_bundle(const BundlePtr& bundle);
  void dissolve(const BundlePtr& bundle);
  void dissolve_bundles_on(const Route& route);
  bool is_alone_on(const Route& route) const;
  void occupy(const Route& route, int flows);
  void mark(const Route& route, const BundlePtr& bundle);

  Simulation& simulation_;
  Platform& platform_;
  std::vector<std::int32_t> flows_on_;  // by Platform::direction_index
  std::vector<BundlePtr> bundle_on_;    // likewise; bundled ones only
  std::uint64_t transfers_ = 0;
};

}  // namespace tandem::sim
