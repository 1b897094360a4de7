#include "engine/sim/collectives/schedule_player.h"

#include <algorithm>
#include <limits>
#include <map>

#include "engine/sim/sim_run.h"
#include "engine/sim/stream_work.h"

namespace tandem::sim {

void SchedulePlayer::start(CollectiveFidelity fidelity) {
  if (fidelity == CollectiveFidelity::fluid) return start_flows();
  start_step();
}

void SchedulePlayer::start_flows() {
  slowest_bytes_per_s_ = std::numeric_limits<double>::infinity();
  left_ = schedule_.flows.size();
  const auto one_done = [self = shared_from_this()] {
    if (--self->left_ == 0) self->end_flows();
  };
  std::map<double, std::vector<std::pair<NodeIndex, NodeIndex>>> pairs;  // by their bytes
  for (const Transfer& flow : schedule_.flows) {
    const SimDevice& from = device(flow.from);
    const SimDevice& to = device(flow.to);
    if (from.node() == to.node()) {
      const double seconds = from.costs().undisturbed_copy_s(flow.bytes);
      if (seconds > 0) slowest_bytes_per_s_ = std::min(slowest_bytes_per_s_, flow.bytes / seconds);
      if (run_.runs(from)) {
        send(flow, false, one_done);
      } else {
        --left_;
      }
      continue;
    }
    const auto route = run_.simulation().platform().route(from.node(), to.node());
    slowest_latency_s_ = std::max(slowest_latency_s_, run_.simulation().platform().latency_s(*route));
    slowest_bytes_per_s_ = std::min(slowest_bytes_per_s_, route->bandwidth_bytes_per_s);
    pairs[flow.bytes].emplace_back(from.node(), to.node());
  }
  if (run_.symmetry() != nullptr) return start_class_flows(one_done);
  for (const auto& [bytes, equal] : pairs) run_.network().transfer_together(equal, bytes, one_done);
}

// Starts the flows that cross links, of the whole class as one.
void SchedulePlayer::start_class_flows(const Simulation::Then& one_done) {
  const auto planned = [this](std::span<const SimDevice* const> devices) {
    const std::vector<int>& order = group_.ring_order();
    const auto node_at = [&](int position) {
      return devices[static_cast<std::size_t>(order[static_cast<std::size_t>(position)])]->node();
    };
    std::vector<symmetry::PlannedFlow> flows;
    for (const Transfer& flow : schedule_.flows) {
      const NodeIndex from = node_at(flow.from), to = node_at(flow.to);
      if (from != to) flows.push_back({.via = {.from = from, .to = to}, .bytes = flow.bytes});
    }
    return flows;
  };
  const std::vector<const SimDevice*> members(group_.devices().begin(), group_.devices().end());
  const std::size_t on_links = planned(members).size();
  if (on_links == 0) return;
  left_ -= on_links - 1;
  const auto route = [this](const symmetry::Via& via, Route& into) {
    run_.simulation().platform().router().append(via.from, via.to, into);
  };
  run_.symmetry()->start(run_.symmetry()->flows_of(group_, planned, route), one_done);
}

void SchedulePlayer::end_flows() {
  const double rest_s = schedule_.latency_steps * slowest_latency_s_ + schedule_.fill_bytes / slowest_bytes_per_s_;
  run_.simulation().at(Simulation::now_s() + rest_s, [self = shared_from_this()] { self->then_(); });
}

void SchedulePlayer::start_step() {
  if (step_ == schedule_.steps) return then_();
  transfers_.clear();
  schedule_.transfers_of_step(step_, transfers_);
  const bool with_latency = step_ < schedule_.latency_steps;
  ++step_;
  left_ = transfers_.size();
  auto self = shared_from_this();
  for (const Transfer& transfer : transfers_) {
    send(transfer, with_latency, [self] {
      if (--self->left_ == 0) guarded(self->run_.scheduler(), [&] { self->start_step(); });
    });
  }
}

void SchedulePlayer::send(const Transfer& transfer, bool with_latency, Simulation::Then then) {
  move_bytes(device(transfer.from), device(transfer.to), transfer.bytes, with_latency, std::move(then));
}

}  // namespace tandem::sim
