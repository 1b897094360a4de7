#include "topologies/meeting_search.h"

#include <algorithm>

namespace tandem {

MeetingSearch::MeetingSearch(const Topology& topology, const Arcs& arcs)
    : topology_(topology), arcs_(arcs), slots_(topology) {
  const auto is_one_way = [](const Topology& part, LinkIndex link) {
    return part.direction(link) == Direction::one_way;
  };
  for (LinkIndex link = topology.machine_links(); link < topology.link_count(); ++link) {
    has_one_way_ |= is_one_way(topology, link);
  }
  for (LinkIndex link = 0; topology.machine_count() > 0 && link < topology.links_of_machine(); ++link) {
    has_one_way_ |= is_one_way(topology.machine(0), link);  // machines differ in models only
  }
}

bool MeetingSearch::knows(NodeIndex from, NodeIndex to) const {
  const auto is_end = [this](NodeIndex index) {
    const NodeKind kind = topology_.kind(index);
    return kind == NodeKind::nic || kind == NodeKind::cpu;
  };
  return !has_one_way_ && from != to && is_end(from) && is_end(to) && topology_.worker(from) != topology_.worker(to);
}

Picoseconds MeetingSearch::run(NodeIndex from, NodeIndex to, bool keeps_to_network) {
  ++search_;
  keeps_to_network_ = keeps_to_network;
  best_ = kNoRoute;
  home_ = topology_.worker(from);
  away_ = topology_.worker(to);
  slots_.set_ends(from, to);
  begin(front_, from);
  begin(back_, to);
  while (!front_.open.empty() && !back_.open.empty()) {
    const Picoseconds front = next_cost(front_);
    const Picoseconds back = next_cost(back_);
    if (front + back > best_) break;
    if (front <= back) {
      visit_next(front_, back_);
    } else {
      visit_next(back_, front_);
    }
  }
  return best_;
}

void MeetingSearch::begin(Side& side, NodeIndex at) {
  side.visits.resize(slots_.count());
  side.open = {};
  side.visits[slots_.of(at)] = {.search = search_};
  side.open.emplace(0, at);
}

void MeetingSearch::visit_next(Side& side, const Side& other) {
  const auto [cost, node] = side.open.top();
  side.open.pop();
  Visit& visit = side.visits[slots_.of(node)];
  if (visit.done || visit.cost < cost) return;
  visit.done = true;
  ++visited_;
  expand(side, other, node, kNoWorker);
  if (home_ != kNoWorker) expand(side, other, node, home_);
  if (away_ != kNoWorker) expand(side, other, node, away_);
}

void MeetingSearch::expand(Side& side, const Side& other, NodeIndex node, int worker) {
  const Picoseconds before = side.visits[slots_.of(node)].cost;
  arcs_.each(node, worker, [&](const Arc& arc) {
    if (topology_.kind(arc.to) == NodeKind::gpu) return;
    if (keeps_to_network_ && topology_.link_model(arc.edge.link).kind != LinkKind::network) return;
    const Picoseconds cost = before + arc.cost;
    const std::size_t slot = slots_.of(arc.to);
    Visit& visit = side.visits[slot];
    if (visit.search == search_ && visit.cost <= cost) return;
    const Visit& met = other.visits[slot];
    const bool has_met = met.search == search_;
    if (!has_met && next_cost(other) > best_ - std::min(best_, cost)) return;  // on no cheapest route
    visit = {.search = search_, .cost = cost};
    side.open.emplace(cost, arc.to);
    if (has_met) best_ = std::min(best_, cost + met.cost);
  });
}

Picoseconds MeetingSearch::rest_at_least(NodeIndex node) const {
  const Visit& visit = back_.visits[slots_.of(node)];
  return visit.search == search_ && visit.done ? visit.cost : next_cost(back_);
}

}  // namespace tandem
