// The part of RunSymmetry that merges the flows of workers that are alike and shows those of a class to SimGrid.
#include <cmath>

#include "engine/sim/collectives/collective_group.h"
#include "engine/sim/sim_run.h"
#include "engine/sim/symmetry/run_symmetry.h"

namespace tandem::sim::symmetry {
namespace {

// What a name of a source begins with; those of collectives: number_of_source().
constexpr char32_t kCopy = 0;

}  // namespace

CallFlows RunSymmetry::flows_of(const CollectiveGroup& group, const Planned& planned,
                                const FlowPatterns::Routes& route) {
  const Role& role = role_of(group);
  CallFlows found;
  if (role.source < 0) return found;  // given up
  found.source = role.source;
  if (!role.classes.empty()) {
    found.initiator = role.number;
    found.initiators = running_of(role.classes.front(), role.images);
  }
  if (group.ring() != nullptr) set_initiators_in_ring(group, role, found);
  std::map<std::pair<double, double>, std::uint32_t> colours;
  std::vector<PatternFlow> pattern;
  std::optional<std::size_t> of_first;
  std::size_t compared = 0;
  for (const std::vector<const SimDevice*>& devices : equal_groups(group, role.parts)) {
    const std::vector<PlannedFlow> flows = planned(devices);
    if (!of_first) of_first = flows.size();
    bool is_same = flows.size() == *of_first;
    for (std::size_t i = 0; i < flows.size() && is_same; ++i) {
      const std::pair size{flows[i].bytes, flows[i].most_bytes_per_s};
      const auto [colour, is_new] = colours.try_emplace(size, static_cast<std::uint32_t>(found.sizes.size()));
      if (is_new) found.sizes.push_back(size);
      pattern.push_back({flows[i].via, colour->second});
      is_same = colour->second == pattern[i].colour;
    }
    if (is_same) {
      ++compared;
      continue;
    }
    // In a ring, the first send of each part is compared with that of another part, and the others with it.
    const bool parts_differ = group.ring() == nullptr || compared % group.ring()->devices().size() == 0;
    if (parts_differ) {
      shrink_blocks();
    } else {
      give_up(*group.ring());
    }
    return {};
  }
  found.pattern = state_.patterns().pattern(found.source, role.number, pattern, route);
  return found;
}

void RunSymmetry::set_initiators_in_ring(const CollectiveGroup& pair, const Role& role, CallFlows& flows) const {
  const CollectiveGroup& ring = *pair.ring();
  const std::vector<SimDevice*>& members = ring.devices();
  const auto mine = std::ranges::find(members, pair.devices().front()) - members.begin();
  flows.ring = &ring;
  flows.initiator = role.number * static_cast<int>(members.size()) + static_cast<int>(mine);
  flows.initiators = static_cast<int>(ring.place_count());
  if (role.classes.empty()) return;
  flows.initiators = static_cast<int>(state_.classes().running_members(role.classes.front()).size()) *
                     ring.place_count_of(pair.devices().front()->worker());
}

std::vector<std::vector<const SimDevice*>> RunSymmetry::equal_groups(const CollectiveGroup& group,
                                                                     const Images& parts) const {
  std::vector<std::vector<const SimDevice*>> groups;
  for (int part = 0; part < parts.count; ++part) {
    std::vector<const SimDevice*> devices;
    for (const SimDevice* device : group.ring() != nullptr ? group.ring()->devices() : group.devices()) {
      devices.push_back(&run_.device_after(*device, parts.twin(0, part)));
    }
    if (group.ring() == nullptr) {
      groups.push_back(std::move(devices));
      continue;
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::size_t next = (i + static_cast<std::size_t>(group.ring_step())) % devices.size();
      groups.push_back({devices[i], devices[next]});
    }
  }
  return groups;
}

void RunSymmetry::start(const CallFlows& flows, Then then) {
  if (run_.scheduler().has_failed() || flows.source < 0) return;
  Source& source = sources_[flows.source];
  const std::uint64_t number = source.begun[flows.initiator]++;
  if (number == source.created) return start_new(source, number, flows, std::move(then));
  const auto merged = source.under_way.find(number);
  if (merged == source.under_way.end()) return differ(flows, {flows.initiator}, "moved data at other times");
  join(*merged->second, flows, std::move(then));
}

void RunSymmetry::join(MergedCall& merged, const CallFlows& flows, Then then) {
  const bool is_same = std::abs(Simulation::now_s() - merged.began_s) < simgrid_compat::kTimingPrecision &&
                       merged.flows.pattern == flows.pattern && merged.flows.sizes == flows.sizes;
  if (!is_same) return differ(flows, merged.joined, "moved other data");
  merged.joined.push_back(flows.initiator);
  merged.then.push_back(std::move(then));
}

void RunSymmetry::start_new(Source& source, std::uint64_t number, const CallFlows& flows, Then then) {
  ++source.created;
  state_.patterns().see_concurrent_calls(flows.source, static_cast<int>(source.under_way.size()) + 1);
  for (const int other : under_way_) state_.patterns().see_together(flows.source, other);
  auto merged = std::make_shared<MergedCall>(
      MergedCall{.began_s = Simulation::now_s(), .flows = flows, .joined = {flows.initiator}});
  merged->then.push_back(std::move(then));
  source.under_way.emplace(number, merged);
  under_way_.insert(flows.source);
  if (!state_.patterns().is_outdated()) return show(source, number);
  unshown_.emplace_back(&source, number);
  if (unshown_.size() > 1) return;
  run_.simulation().at(Simulation::now_s(), [this] { guarded(run_.scheduler(), [this] { show_all(); }); });
}

// Shows SimGrid the flows that began at this instant, after all of them are known: one division then serves them all.
void RunSymmetry::show_all() {
  const auto unshown = std::exchange(unshown_, {});
  if (run_.scheduler().has_failed() || !bring_up_to_date()) return;
  for (const auto& [source, number] : unshown) show(*source, number);
}

void RunSymmetry::show(Source& source, std::uint64_t number) {
  const std::shared_ptr<MergedCall> merged = source.under_way.at(number);
  const CallFlows& flows = merged->flows;
  const auto one_ended = [this, &source, number, merged] {
    if (--merged->left == 0) guarded(run_.scheduler(), [&] { end(source, number); });
  };
  std::vector<Network::Flow> all;
  merged->shown = state_.patterns().class_flows(flows.source, flows.pattern);
  if (flows.ring != nullptr && merged->shown->size() > 1) return give_up(*flows.ring);
  for (const ClassFlow& flow : *merged->shown) {
    const auto [bytes, most_bytes_per_s] = flows.sizes[flow.colour];
    all.push_back({run_.two_hosts(), flow.route, bytes, most_bytes_per_s});
  }
  merged->left = all.size();
  auto& carried = carried_[{flows.source, flows.pattern}];
  for (std::size_t colour = 0; colour < flows.sizes.size(); ++colour) {
    carried[static_cast<std::uint32_t>(colour)] += flows.sizes[colour].first;
  }
  run_.network().start_together(std::move(all), one_ended, false);
}

void RunSymmetry::end(Source& source, std::uint64_t number) {
  const std::shared_ptr<MergedCall> merged = source.under_way.at(number);
  source.under_way.erase(number);
  if (source.under_way.empty()) under_way_.erase(merged->flows.source);
  if (static_cast<int>(merged->joined.size()) < merged->flows.initiators) {
    return differ(merged->flows, merged->joined, "moved data at other times");
  }
  for (const Then& then : merged->then) then();
}

// Divides the flows again if there are new ones. Returns false if the run ends and is repeated, because workers turned
// out to differ. If active flows would now be different, the run goes on with provisional times.
bool RunSymmetry::bring_up_to_date() {
  FlowPatterns& patterns = state_.patterns();
  if (!patterns.is_outdated()) return true;
  const bool is_whole = patterns.update([this](int index, std::span<const std::uint32_t> parts) {
    state_.split(index, {parts.begin(), parts.end()});
  });
  if (!is_whole) {
    if (patterns.parts_differ()) state_.shrink_blocks();
    repeat();
    return false;
  }
  for (const auto& [index, source] : sources_) {
    for (const auto& [number, merged] : source.under_way) {
      if (!merged->shown) continue;
      const ClassFlows& now = *patterns.class_flows(index, merged->flows.pattern);
      is_provisional_ = is_provisional_ || !patterns.may_stay(*merged->shown, now);
    }
  }
  return true;
}

void RunSymmetry::copy(const SimDevice& from, const SimDevice& to, double bytes, bool with_latency, Then then) {
  if (from.worker() != to.worker()) return give_up("devices of different workers copy from each other");
  const bool is_between_gpus = from.id().type == DeviceType::gpu && to.id().type == DeviceType::gpu;
  if (is_between_gpus && state_.blocks().size() > 1) return shrink_blocks();
  const Ends way{from.node(), to.node()};
  copy_along(from, {&way, 1}, bytes, with_latency, std::move(then));
}

void RunSymmetry::load(const SimDevice& host, const SimDevice& gpu, double bytes, Then then) {
  std::vector<Ends> ways;
  for (int image = 0; image < state_.blocks().size(); ++image) {
    const NodeIndex node = run_.device_after(gpu, image).node();
    ways.emplace_back(run_.nearest_processor(node), node);
  }
  copy_along(host, ways, bytes, true, std::move(then));
}

void RunSymmetry::store(const SimDevice& gpu, const SimDevice& host, double bytes, Then then) {
  std::vector<Ends> ways;
  for (int image = 0; image < state_.blocks().size(); ++image) {
    const NodeIndex node = run_.device_after(gpu, image).node();
    ways.emplace_back(node, run_.nearest_processor(node));
  }
  copy_along(host, ways, bytes, true, std::move(then));
}

void RunSymmetry::copy_along(const SimDevice& device, std::span<const Ends> ways, double bytes, bool with_latency,
                             Then then) {
  Platform& platform = run_.simulation().platform();
  const auto& [from, to] = ways.front();
  const double latency_s = with_latency ? platform.latency_s(*platform.route(from, to)) : 0;
  if (bytes <= 0) return run_.simulation().at(Simulation::now_s() + latency_s, std::move(then));
  CallFlows& flows = copies_[ways.front()];
  if (flows.source < 0) {
    const WorkerClasses& classes = state_.classes();
    const int index = classes.class_of(device.worker());
    const Images each{.count = classes.size(index)};
    flows.source =
        state_.patterns().source({kCopy, static_cast<char32_t>(index), classes.place_of(from), classes.place_of(to)},
                                 {index}, each, {.count = static_cast<int>(ways.size())});
    flows.initiator = classes.number_of(device.worker());
    flows.initiators = running_of(index, each);
    std::vector<PatternFlow> pattern;
    for (const auto& [begin, end] : ways) pattern.push_back({.via = {.from = begin, .to = end}});
    flows.pattern = state_.patterns().pattern(flows.source, flows.initiator, pattern, [&](const Via& via, Route& into) {
      platform.router().append(via.from, via.to, into);
    });
  }
  CallFlows now = flows;
  now.sizes = {{bytes, 0}};
  if (latency_s <= 0) return start(now, std::move(then));
  run_.simulation().at(Simulation::now_s() + latency_s, [this, now = std::move(now), then = std::move(then)] {
    guarded(run_.scheduler(), [&] { start(now, then); });
  });
}

void RunSymmetry::send(const CollectiveGroup& pair, double bytes, Then then) {
  const SimDevice& from = *pair.devices()[0];
  const SimDevice& to = *pair.devices()[1];
  Platform& platform = run_.simulation().platform();
  const double latency_s = platform.latency_s(*platform.route(from.node(), to.node()));
  if (bytes <= 0) return run_.simulation().at(Simulation::now_s() + latency_s, std::move(then));
  const auto planned = [&](std::span<const SimDevice* const> devices) {
    const Via via{.from = devices[0]->node(), .to = devices[1]->node()};
    return std::vector<PlannedFlow>{{.via = via, .bytes = bytes}};
  };
  const CallFlows flows =
      flows_of(pair, planned, [&](const Via& via, Route& into) { platform.router().append(via.from, via.to, into); });
  run_.simulation().at(Simulation::now_s() + latency_s, [this, flows, then = std::move(then)] {
    guarded(run_.scheduler(), [&] { start(flows, then); });
  });
}

}  // namespace tandem::sim::symmetry
