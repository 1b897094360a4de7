#include "topologies/route_search.h"

namespace tandem {

RouteSearch::RouteSearch(const Topology& topology, const Arcs& arcs)
    : topology_(topology), arcs_(arcs), meeting_(topology, arcs), slots_(topology), visits_(2 * slots_.count()) {}

std::optional<Ways> RouteSearch::find(NodeIndex from, NodeIndex to, Within within) {
  const int home = topology_.worker(from);
  avoids_network_ = home != kNoWorker && home == topology_.worker(to);
  const bool are_nics = topology_.kind(from) == NodeKind::nic && topology_.kind(to) == NodeKind::nic;
  keeps_to_network_ = are_nics && home != topology_.worker(to);
  State end = run(from, to, within);
  const bool is_limited = std::exchange(avoids_network_, false) || std::exchange(keeps_to_network_, false);
  if (end == kNone && is_limited) end = run(from, to, within);
  if (end == kNone) return std::nullopt;
  return ways_to(end);
}

RouteSearch::State RouteSearch::run(NodeIndex from, NodeIndex to, Within within) {
  ++search_;
  steps_.clear();
  open_ = {};
  start_ = 2 * from;
  to_ = to;
  is_bounded_ = !avoids_network_ && meeting_.knows(from, to);
  if (is_bounded_) bound_ = meeting_.run(from, to, keeps_to_network_);
  if (is_bounded_ && bound_ == MeetingSearch::kNoRoute) return kNone;
  slots_.set_ends(from, to);
  visit_of(start_) = {.search = search_};
  open_.emplace(0, start_);
  const int home = topology_.worker(from);
  const int away = topology_.worker(to);
  while (!open_.empty()) {
    const auto [cost, state] = open_.top();
    open_.pop();
    Visit& visit = visit_of(state);
    if (visit.done || visit.cost < cost) continue;
    cost_ = cost;
    if (node_of(state) == to) return state;
    visit.done = true;
    ++visited_;
    if (within == Within::topology) expand(state, cost, kNoWorker);
    if (home != kNoWorker) expand(state, cost, home);
    if (away != kNoWorker && away != home) expand(state, cost, away);
  }
  return kNone;
}

void RouteSearch::expand(State state, Picoseconds cost, int worker) {
  arcs_.each(node_of(state), worker, [&](const Arc& arc) {
    if (!may_leave(state, arc)) return;
    const bool crossable = state == start_ && is_nvlink(arc) && is_gpu(arc.to);
    if (is_gpu(arc.to) && arc.to != to_ && !crossable) return;
    reach(2 * arc.to + (crossable ? 1 : 0), cost + arc.cost, state, arc.edge);
  });
}

bool RouteSearch::may_leave(State state, const Arc& arc) const {
  const bool is_network = topology_.link_model(arc.edge.link).kind == LinkKind::network;
  if (is_network ? avoids_network_ : keeps_to_network_) return false;
  if (state == start_ || !is_gpu(node_of(state))) return true;
  return is_crossable(state) && is_nvlink(arc) && is_gpu(arc.to);
}

bool RouteSearch::may_be_on_route(NodeIndex node, Picoseconds cost) const {
  return !is_bounded_ || (cost <= bound_ && meeting_.rest_at_least(node) <= bound_ - cost);
}

void RouteSearch::reach(State state, Picoseconds cost, State from, Edge edge) {
  if (!may_be_on_route(node_of(state), cost)) return;
  Visit& visit = visit_of(state);
  const bool is_new = visit.search != search_;
  if (!is_new && visit.cost < cost) return;
  if (is_new || cost < visit.cost) {
    visit = {.search = search_, .cost = cost};
    open_.emplace(cost, state);
  }
  steps_.push_back({from, edge, visit.first_step});
  visit.first_step = static_cast<std::uint32_t>(steps_.size() - 1);
}

// Numbers the states that lead to the end in the order in which they are met on the way back.
Ways RouteSearch::ways_to(State end) {
  Ways found;
  std::vector<State> states = {end};
  visit_of(end).number = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (std::uint32_t at = visit_of(states[i]).first_step; at != kNone; at = steps_[at].next) {
      const Step& step = steps_[at];
      Visit& before = visit_of(step.from);
      if (step.from != start_ && before.number == kNone) {
        before.number = static_cast<std::uint32_t>(states.size());
        states.push_back(step.from);
      }
      found.ways.push_back({step.edge, step.from == start_ ? Ways::kStart : before.number});
    }
    found.starts.push_back(static_cast<std::uint32_t>(found.ways.size()));
  }
  return found;
}

}  // namespace tandem
