#include "engine/sim/network.h"

#include <algorithm>
#include <map>

namespace tandem::sim {

Network::Network(Simulation& simulation)
    : simulation_(simulation),
      platform_(simulation.platform()),
      flows_on_(platform_.direction_count()),
      bundle_on_(platform_.direction_count()) {}

// SimGrid would let a flow with a tenth of the latency have ten times the bandwidth of a shared link, as TCP does.
// Latency is therefore spent here, and SimGrid sees flows without any, which share links evenly.
void Network::transfer(NodeIndex from, NodeIndex to, double bytes, bool with_latency, Then then) {
  RoutePtr route = platform_.route(from, to);  // throws where there is none, before anything has begun
  const double latency_s = with_latency ? route->latency_s : 0;
  // Without bytes there is no flow: SimGrid would never report its end.
  if (bytes <= 0) return simulation_.at(Simulation::now_s() + latency_s, std::move(then));
  const auto begin = [this, pair = Pair{from, to}, bytes, route = std::move(route)](Then at_end) {
    dissolve_bundles_on(*route);
    start_flow(pair, bytes, route, simulation_.in_scheduled_order(std::move(at_end)));
  };
  if (latency_s <= 0) return begin(std::move(then));
  simulation_.at(Simulation::now_s() + latency_s, [begin, then = std::move(then)] { begin(then); });
}

void Network::transfer_together(std::span<const Pair> pairs, double bytes, const Then& each) {
  const Then each_in_order = simulation_.in_scheduled_order(each);
  std::vector<RoutePtr> routes;
  routes.reserve(pairs.size());
  for (const auto& [from, to] : pairs) {
    routes.push_back(platform_.route(from, to));
    dissolve_bundles_on(*routes.back());
  }
  for (const RoutePtr& route : routes) occupy(*route, 1);
  std::map<double, BundlePtr> bundles;  // by the rate that each flow reaches alone
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!is_alone_on(*routes[i])) {
      others.push_back(i);
      continue;
    }
    BundlePtr& bundle = bundles[routes[i]->bandwidth_bytes_per_s];
    if (!bundle) bundle = std::make_shared<Bundle>();
    bundle->pairs.push_back(pairs[i]);
    bundle->routes.push_back(routes[i]);
  }
  for (const RoutePtr& route : routes) occupy(*route, -1);
  for (const std::size_t i : others) start_flow(pairs[i], bytes, routes[i], each_in_order);
  for (const auto& [rate, bundle] : bundles) {
    bundle->each = each_in_order;
    start_bundle(bundle, bytes);
  }
}

Simulation::Activity& Network::start_flow(const Pair& pair, double bytes, RoutePtr route, Then then) {
  ++transfers_;
  occupy(*route, 1);
  return simulation_.start_flow(pair.first, pair.second, bytes,
                                [this, route = std::move(route), then = std::move(then)] {
                                  occupy(*route, -1);
                                  then();
                                });
}

void Network::start_bundle(const BundlePtr& bundle, double bytes) {
  if (bundle->pairs.size() == 1) {
    start_flow(bundle->pairs.front(), bytes, bundle->routes.front(), bundle->each);
    return;
  }
  for (std::size_t i = 0; i < bundle->pairs.size(); ++i) {
    mark(*bundle->routes[i], bundle);
    if (i > 0) occupy(*bundle->routes[i], 1);
  }
  transfers_ += bundle->pairs.size() - 1;
  bundle->flow =
      &start_flow(bundle->pairs.front(), bytes, bundle->routes.front(), [this, bundle] { end_bundle(bundle); });
}

void Network::end_bundle(const BundlePtr& bundle) {
  if (bundle->flow == nullptr) return bundle->each();  // dissolved: this is the end of the first flow alone
  bundle->flow = nullptr;
  for (std::size_t i = 0; i < bundle->pairs.size(); ++i) {
    mark(*bundle->routes[i], nullptr);
    if (i > 0) occupy(*bundle->routes[i], -1);
  }
  for (std::size_t i = 0; i < bundle->pairs.size(); ++i) bundle->each();
}

void Network::dissolve(const BundlePtr& bundle) {
  const double left_bytes = Simulation::remaining_bytes(*std::exchange(bundle->flow, nullptr));
  for (const RoutePtr& route : bundle->routes) mark(*route, nullptr);
  for (std::size_t i = 1; i < bundle->pairs.size(); ++i) {
    occupy(*bundle->routes[i], -1);
    --transfers_;
    start_flow(bundle->pairs[i], left_bytes, bundle->routes[i], bundle->each);
  }
}

void Network::dissolve_bundles_on(const Route& route) {
  for (const Edge& hop : route.hops) {
    if (const BundlePtr bundle = bundle_on_[platform_.direction_index(hop)]) dissolve(bundle);
  }
}

bool Network::is_alone_on(const Route& route) const {
  return std::ranges::all_of(route.hops,
                             [this](const Edge& hop) { return flows_on_[platform_.direction_index(hop)] == 1; });
}

void Network::occupy(const Route& route, int flows) {
  for (const Edge& hop : route.hops) flows_on_[platform_.direction_index(hop)] += flows;
}

void Network::mark(const Route& route, const BundlePtr& bundle) {
  for (const Edge& hop : route.hops) bundle_on_[platform_.direction_index(hop)] = bundle;
}

}  // namespace tandem::sim
