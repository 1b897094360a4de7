#include "topologies/meeting_search.h"

#include <algorithm>

namespace tandem {

MeetingSearch::MeetingSearch(const Topology& topology, const Arcs& arcs) : topology_(topology), arcs_(arcs) {
  for (LinkIndex link = 0; link < topology.link_count(); ++link) {
    has_one_way_ |= topology.link(link).direction == Direction::one_way;
  }
}

bool MeetingSearch::knows(NodeIndex from, NodeIndex to) const {
  const auto is_end = [this](NodeIndex index) {
    const NodeKind kind = topology_.node(index).kind;
    return kind == NodeKind::nic || kind == NodeKind::cpu;
  };
  return !has_one_way_ && from != to && is_end(from) && is_end(to) &&
         topology_.node(from).worker != topology_.node(to).worker;
}

Picoseconds MeetingSearch::run(NodeIndex from, NodeIndex to) {
  ++search_;
  best_ = kNoRoute;
  home_ = topology_.node(from).worker;
  away_ = topology_.node(to).worker;
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
  side.visits.resize(topology_.node_count());
  side.open = {};
  side.visits[at] = {.search = search_};
  side.open.emplace(0, at);
}

void MeetingSearch::visit_next(Side& side, const Side& other) {
  const auto [cost, node] = side.open.top();
  side.open.pop();
  Visit& visit = side.visits[node];
  if (visit.done || visit.cost < cost) return;
  visit.done = true;
  ++visited_;
  expand(side, other, node, kNoWorker);
  if (home_ != kNoWorker) expand(side, other, node, home_);
  if (away_ != kNoWorker) expand(side, other, node, away_);
}

void MeetingSearch::expand(Side& side, const Side& other, NodeIndex node, int worker) {
  for (const Arc& arc : arcs_.into(node, worker)) {
    if (topology_.node(arc.to).kind == NodeKind::gpu) continue;
    const Picoseconds cost = side.visits[node].cost + arcs_.cost(arc);
    Visit& visit = side.visits[arc.to];
    if (visit.search == search_ && visit.cost <= cost) continue;
    visit = {.search = search_, .cost = cost};
    side.open.emplace(cost, arc.to);
    const Visit& met = other.visits[arc.to];
    if (met.search == search_) best_ = std::min(best_, cost + met.cost);
  }
}

Picoseconds MeetingSearch::rest_at_least(NodeIndex node) const {
  const Visit& visit = back_.visits[node];
  return visit.search == search_ && visit.done ? visit.cost : next_cost(back_);
}

}  // namespace tandem
