#include "engine/sim/network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "engine/sim/fault_clock.h"
#include "topologies/base/portable_math.h"

namespace tandem::sim {

Network::Network(Simulation& simulation, FaultClock* faults)
    : simulation_(simulation),
      platform_(simulation.platform()),
      faults_(faults),
      flows_on_(platform_.direction_count()),
      bundle_on_(platform_.direction_count()),
      bundles_(!platform_.topology().facts().exchanges_in_turn && platform_.topology().facts().share_spread <= 0 &&
               (faults == nullptr || !faults->varies(Jitter::On::network))) {}

// SimGrid would let a flow with a tenth of the latency have ten times the bandwidth of a shared link, as TCP does.
// Latency is therefore spent here, and SimGrid sees flows without any, which share links evenly.
void Network::transfer(NodeIndex from, NodeIndex to, double bytes, bool with_latency, Then then) {
  // The route throws where there is none, before anything has begun.
  transfer_over(platform_.route(from, to), {from, to}, bytes, with_latency, std::move(then));
}

void Network::transfer_over(RoutePtr route, Pair hosts, double bytes, bool with_latency, Then then) {
  const double factor = faults_ != nullptr ? faults_->factor_of_transfer() : 1;
  const double latency_s = with_latency ? factor * platform_.latency_s(*route) : 0;
  // Without bytes there is no flow: SimGrid would never report its end.
  if (bytes <= 0) return simulation_.at(Simulation::now_s() + latency_s, std::move(then));
  const auto begin = [this, hosts, bytes, factor, route = std::move(route)](Then at_end) {
    dissolve_bundles_on(*route);
    count(*route, bytes);
    start_weighted({hosts, route, factor * bytes}, simulation_.in_scheduled_order(std::move(at_end)));
  };
  if (latency_s <= 0) return begin(std::move(then));
  simulation_.at(Simulation::now_s() + latency_s, [begin, then = std::move(then)] { begin(then); });
}

void Network::transfer_together(std::span<const Pair> pairs, double bytes, const Then& each) {
  std::vector<Flow> flows;
  flows.reserve(pairs.size());
  for (const Pair& pair : pairs) flows.push_back({pair, platform_.route(pair.first, pair.second), bytes});
  start_together(std::move(flows), each);
}

void Network::start_together(std::vector<Flow> flows, const Then& each, bool counts) {
  const Then each_in_order = simulation_.in_scheduled_order(each);
  if (bundles_) flows = with_equal_ones_joined(std::move(flows));
  for (const Flow& flow : flows) dissolve_bundles_on(*flow.route);
  for (const Flow& flow : flows) {
    occupy(*flow.route, flow.count);
    count(*flow.route, counts ? flow.count * flow.bytes : 0);
  }
  // By the rate that each flow reaches alone, its bytes, and its count.
  std::map<std::tuple<double, double, int>, BundlePtr> bundles;
  std::vector<Flow> others;
  std::vector<std::pair<RoutePtr, int>> occupied;
  for (Flow& flow : flows) {
    occupied.emplace_back(flow.route, flow.count);
    if (faults_ != nullptr) flow.bytes *= faults_->factor_of_transfer();
    if (!bundles_ || !is_alone(flow) || (faults_ != nullptr && faults_->changes(*flow.route))) {
      others.push_back(std::move(flow));
      continue;
    }
    BundlePtr& bundle = bundles[{flow.alone_bytes_per_s(), flow.bytes, flow.count}];
    if (!bundle) bundle = std::make_shared<Bundle>();
    bundle->flows.push_back(std::move(flow));
  }
  for (const auto& [route, flows_of_route] : occupied) occupy(*route, -flows_of_route);
  for (const Flow& flow : others) start_weighted(flow, each_in_order);
  for (const auto& [key, bundle] : bundles) {
    bundle->each = each_in_order;
    start_bundle(bundle);
  }
}

// Joins flows that take one route object, which all flows between two nodes usually do.
std::vector<Network::Flow> Network::with_equal_ones_joined(std::vector<Flow> flows) {
  struct Key {
    const Route* route;
    double bytes, most_bytes_per_s;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const Route*>()(key.route) ^ (std::hash<double>()(key.bytes) << 1U);
    }
  };
  std::unordered_map<Key, std::size_t, Hash> places;
  places.reserve(flows.size());
  std::size_t joined = 0;
  for (Flow& flow : flows) {
    const auto [place, is_new] = places.try_emplace({flow.route.get(), flow.bytes, flow.most_bytes_per_s}, joined);
    if (!is_new) {
      flows[place->second].count += flow.count;
      continue;
    }
    if (&flows[joined] != &flow) flows[joined] = std::move(flow);
    ++joined;
  }
  flows.resize(joined);
  return flows;
}

// A flow of weight n is n equal flows, each of which has the share of one.
void Network::start_weighted(Flow flow, Then then) {
  const int weight = next_weight();
  if (weight > 1) {
    then = [left = std::make_shared<int>(weight), then = std::move(then)] {
      if (--*left == 0) then();
    };
  }
  flow.bytes /= weight;
  flow.most_bytes_per_s /= weight;
  for (int part = 0; part < weight; ++part) start_flow(flow, then);
}

// Draws a weight whose logarithm is nearly normal: the sum of twelve uniform numbers, so that every compiler draws the
// same.
int Network::next_weight() {
  constexpr double kMiddle = 4, kMost = 16;
  const double spread = platform_.topology().facts().share_spread;
  if (spread <= 0) return 1;
  double normal = -6;
  for (int i = 0; i < 12; ++i) normal += static_cast<double>(random_() >> 11) * 0x1p-53;
  return static_cast<int>(std::clamp(std::round(kMiddle * portable::exp(spread * normal)), 1.0, kMost));
}

Simulation::Activity& Network::start_flow(const Flow& flow, Then then) {
  occupy(*flow.route, flow.count);
  platform_.use_route(flow.route);
  Simulation::Activity& activity =
      simulation_.start_flow(flow.pair.first, flow.pair.second, flow.bytes, flow.most_bytes_per_s, flow.count,
                             [this, route = flow.route, count = flow.count, then = std::move(then)] {
                               occupy(*route, -count);
                               for (int i = 0; i < count; ++i) then();
                             });
  platform_.use_route(nullptr);
  return activity;
}

void Network::start_bundle(const BundlePtr& bundle) {
  if (bundle->flows.size() == 1) {
    start_flow(bundle->flows.front(), bundle->each);
    return;
  }
  for (std::size_t i = 0; i < bundle->flows.size(); ++i) {
    mark(*bundle->flows[i].route, bundle);
    if (i > 0) occupy(*bundle->flows[i].route, bundle->flows[i].count);
  }
  bundle->flow = &start_flow(bundle->flows.front(), [this, bundle] { end_bundle(bundle); });
}

// Called for each of the equal flows that the first one represents, at the same instant.
void Network::end_bundle(const BundlePtr& bundle) {
  if (bundle->flow != nullptr) {
    bundle->flow = nullptr;
    for (std::size_t i = 0; i < bundle->flows.size(); ++i) {
      mark(*bundle->flows[i].route, nullptr);
      if (i > 0) occupy(*bundle->flows[i].route, -bundle->flows[i].count);
    }
    bundle->ended = bundle->flows.size();
  }
  for (std::size_t i = 0; i < bundle->ended; ++i) bundle->each();
}

void Network::dissolve(const BundlePtr& bundle) {
  const double left_bytes = Simulation::remaining_bytes(*std::exchange(bundle->flow, nullptr));
  for (const Flow& flow : bundle->flows) mark(*flow.route, nullptr);
  for (std::size_t i = 1; i < bundle->flows.size(); ++i) {
    Flow rest = bundle->flows[i];
    occupy(*rest.route, -rest.count);
    rest.bytes = left_bytes / rest.count;
    start_flow(rest, bundle->each);
  }
}

void Network::dissolve_bundles_on(const Route& route) {
  for (const Edge& hop : route.hops) {
    if (const BundlePtr bundle = bundle_on_.at(platform_.direction_index(hop))) dissolve(bundle);
  }
}

bool Network::is_alone(const Flow& flow) const {
  return std::ranges::all_of(
      flow.route->hops, [&](const Edge& hop) { return flows_on_.at(platform_.direction_index(hop)) == flow.count; });
}

void Network::count(const Route& route, double bytes) {
  for (const Edge& hop : route.hops) carry(platform_.direction_index(hop), bytes);
}

std::vector<LinkUse> Network::link_use() const {
  std::vector<std::pair<std::size_t, double>> carried;
  carried.reserve(carried_.size());
  for (const auto& [index, one] : carried_) carried.emplace_back(index, one.bytes);
  std::sort(carried.begin(), carried.end());
  std::vector<LinkUse> uses;
  uses.reserve(carried.size());
  const Topology& topology = platform_.topology();
  for (const auto& [index, bytes] : carried) {
    if (bytes == 0) continue;
    const Link link = topology.link(static_cast<LinkIndex>(index / 2));
    const Node from = topology.node(index % 2 == 0 ? link.from : link.to);
    const Node to = topology.node(index % 2 == 0 ? link.to : link.from);
    uses.push_back({.from = from.name,
                    .to = to.name,
                    .from_kind = std::string(name_of(from.kind)),
                    .to_kind = std::string(name_of(to.kind)),
                    .kind = std::string(name_of(link.model->kind)),
                    .bytes = bytes,
                    .bytes_per_s = link.model->bandwidth_bytes_per_s.value});
  }
  return uses;
}

void Network::add_consulted(std::set<std::string>& inputs) const {
  const Topology& topology = platform_.topology();
  std::set<const LinkModel*> carrying;
  for (const auto& [index, carried] : carried_) {
    if (carried.is_consulted) carrying.insert(&topology.link_model(static_cast<LinkIndex>(index / 2)));
  }
  for (const LinkModel* model : carrying) inputs.insert(model->id + ".bandwidth");
  for (const LinkModel* model : platform_.models_with_latency()) inputs.insert(model->id + ".latency");
}

void Network::forget_consulted() {
  for (auto& [index, carried] : carried_) carried.is_consulted = false;
  platform_.forget_latencies();
}

void Network::occupy(const Route& route, int flows) {
  for (const Edge& hop : route.hops) flows_on_[platform_.direction_index(hop)] += flows;
}

void Network::mark(const Route& route, const BundlePtr& bundle) {
  for (const Edge& hop : route.hops) bundle_on_[platform_.direction_index(hop)] = bundle;
}

}  // namespace tandem::sim
