// Transfers of a Simulation, and equal ones as one: SimGrid 3.32 spends time proportional to the number of transfers
// under way on the end of each, so that the 16,384 flows of a ring would cost seconds.
#include <algorithm>
#include <cmath>
#include <map>

#include "engine/sim/simulation.h"

namespace tandem::sim {

void Simulation::transfer_together(std::span<const std::pair<NodeIndex, NodeIndex>> pairs, double bytes,
                                   const Then& each) {
  const Then each_scheduled = scheduled(each);
  std::vector<std::shared_ptr<const Route>> routes;
  routes.reserve(pairs.size());
  for (const auto& [from, to] : pairs) {
    routes.push_back(platform_->route(from, to));
    unbundle_on(*routes.back());
  }
  for (const auto& route : routes) occupy(*route, 1);
  const auto is_alone = [this](const Route& route) {
    return std::ranges::all_of(route.hops, [this](const Edge& hop) { return flows_on_[platform_->lane(hop)] == 1; });
  };
  std::map<double, BundlePtr> bundles;  // by the rate that each flow reaches alone
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!is_alone(*routes[i])) {
      others.push_back(i);
      continue;
    }
    BundlePtr& bundle = bundles[routes[i]->bandwidth_bytes_per_s];
    if (!bundle) bundle = std::make_shared<Bundle>();
    bundle->pairs.push_back(pairs[i]);
    bundle->routes.push_back(routes[i]);
  }
  for (const auto& route : routes) occupy(*route, -1);
  for (const std::size_t i : others) start_transfer(pairs[i].first, pairs[i].second, bytes, routes[i], each_scheduled);
  for (const auto& [rate, bundle] : bundles) {
    bundle->each = each_scheduled;
    start_bundle(bundle, bytes);
  }
}

Simulation::Flight& Simulation::start_transfer(NodeIndex from, NodeIndex to, double bytes,
                                               std::shared_ptr<const Route> route, Then then) {
  ++transfers_;
  occupy(*route, 1);
  Flight& flight = take_flight(std::move(then));
  flight.route = std::move(route);
  flight.activity = simgrid_compat::start_comm(platform_->host(from), platform_->host(to),
                                               static_cast<std::uint64_t>(std::llround(bytes)), &flight);
  return flight;
}

void Simulation::start_bundle(const BundlePtr& bundle, double bytes) {
  const auto [from, to] = bundle->pairs.front();
  if (bundle->pairs.size() == 1) {
    start_transfer(from, to, bytes, bundle->routes.front(), bundle->each);
    return;
  }
  for (std::size_t i = 0; i < bundle->pairs.size(); ++i) {
    for (const Edge& hop : bundle->routes[i]->hops) bundle_on_[platform_->lane(hop)] = bundle;
    if (i > 0) occupy(*bundle->routes[i], 1);
  }
  transfers_ += bundle->pairs.size() - 1;
  bundle->flight = &start_transfer(from, to, bytes, bundle->routes.front(), [this, bundle] { end_bundle(bundle); });
}

void Simulation::end_bundle(const BundlePtr& bundle) {
  if (bundle->flight == nullptr) return bundle->each();  // unbundled: this is the end of the first alone
  bundle->flight = nullptr;
  for (std::size_t i = 0; i < bundle->pairs.size(); ++i) {
    for (const Edge& hop : bundle->routes[i]->hops) bundle_on_[platform_->lane(hop)] = nullptr;
    if (i > 0) occupy(*bundle->routes[i], -1);
  }
  for (std::size_t i = 0; i < bundle->pairs.size(); ++i) bundle->each();
}

// Another flow comes to a link of the bundle: from now on SimGrid sees every flow.
void Simulation::unbundle(const BundlePtr& bundle) {
  const double left_bytes = bundle->flight->activity->get_remaining();
  bundle->flight = nullptr;
  for (const auto& route : bundle->routes) {
    for (const Edge& hop : route->hops) bundle_on_[platform_->lane(hop)] = nullptr;
  }
  for (std::size_t i = 1; i < bundle->pairs.size(); ++i) {
    occupy(*bundle->routes[i], -1);
    --transfers_;
    start_transfer(bundle->pairs[i].first, bundle->pairs[i].second, left_bytes, bundle->routes[i], bundle->each);
  }
}

void Simulation::unbundle_on(const Route& route) {
  for (const Edge& hop : route.hops) {
    if (const BundlePtr bundle = bundle_on_[platform_->lane(hop)]) unbundle(bundle);
  }
}

void Simulation::occupy(const Route& route, int flows) {
  for (const Edge& hop : route.hops) flows_on_[platform_->lane(hop)] += flows;
}

}  // namespace tandem::sim
