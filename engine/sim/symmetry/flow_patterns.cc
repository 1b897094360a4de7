#include "engine/sim/symmetry/flow_patterns.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "engine/base/run_phase.h"
#include "topologies/base/error.h"

namespace tandem::sim::symmetry {

int FlowPatterns::source(const std::u32string& name, std::vector<int> classes, const Images& images,
                         const Images& parts) {
  const auto [known, is_new] = names_.try_emplace(name, static_cast<int>(sources_.size()));
  if (is_new) {
    sources_.push_back({.classes = std::move(classes),
                        .images = images,
                        .parts = static_cast<std::size_t>(parts.count),
                        .members_do_the_same = images.members > 1 || parts.members > 1,
                        .component = known->second});
  }
  return known->second;
}

int FlowPatterns::pattern(int source, int image, std::span<const PatternFlow> flows, const Routes& route) {
  Source& from = sources_[static_cast<std::size_t>(source)];
  for (std::size_t i = 0; i < from.patterns.size(); ++i) {
    const auto is_image = [&](const PatternFlow& one, const PatternFlow& other) {
      return one.colour == other.colour && on_image(one.via, from, image) == other.via;
    };
    if (std::ranges::equal(from.patterns[i].flows, flows, is_image)) return static_cast<int>(i);
  }
  tell_phase({.text = "finds the routes of its first step"});
  Pattern& made = from.patterns.emplace_back();
  made.flows.reserve(flows.size());
  for (const PatternFlow& flow : flows) made.flows.push_back({on_image(flow.via, from, 0), flow.colour});
  const std::size_t all = made.flows.size() * static_cast<std::size_t>(from.images.count);
  made.crossings.starts.reserve(all + 1);
  made.bytes_per_s.reserve(all);
  made.latency_s.reserve(all);
  Route found;
  for (int other = 0; other < from.images.count; ++other) {
    for (const PatternFlow& flow : made.flows) {
      found.hops.clear();
      found.latency_s = 0;
      found.bandwidth_bytes_per_s = std::numeric_limits<double>::infinity();
      route(on_image(flow.via, from, other), found);
      add_flow(made, found);
    }
  }
  from.is_divided = false;
  is_outdated_ = true;
  return static_cast<int>(from.patterns.size()) - 1;
}

Via FlowPatterns::on_image(Via via, const Source& source, int image) const {
  if (source.classes.empty()) return via;
  for (NodeIndex* node : {&via.from, &via.to, &via.from_nic, &via.to_nic}) {
    if (*node != kNowhere) *node = classes_.twin(*node, source.images.twin(classes_.member_at(*node), image));
  }
  return via;
}

void FlowPatterns::add_flow(Pattern& pattern, const Route& route) const {
  for (const Edge& hop : route.hops) pattern.crossings.links.push_back(direction_of(hop));
  pattern.crossings.close_flow();
  pattern.bytes_per_s.push_back(route.bandwidth_bytes_per_s);
  pattern.latency_s.push_back(route.latency_s);
}

std::uint32_t FlowPatterns::direction_of(const Edge& hop) const {
  const bool shares = topology_.direction(hop.link) != Direction::duplex;
  return 2 * hop.link + (hop.forward || shares ? 0 : 1);
}

void FlowPatterns::see_concurrent_calls(int source, int calls) {
  Source& from = sources_[static_cast<std::size_t>(source)];
  if (calls <= from.concurrent_calls) return;
  from.concurrent_calls = calls;
  from.is_divided = false;
  is_outdated_ = true;
}

void FlowPatterns::see_together(int source, int other) {
  const int component = component_of(source);
  const int joined = component_of(other);
  if (component == joined) return;
  sources_[static_cast<std::size_t>(std::max(component, joined))].component = std::min(component, joined);
  sources_[static_cast<std::size_t>(source)].is_divided = false;
  if (has_components_) is_outdated_ = has_larger_components_ = true;
}

int FlowPatterns::component_of(int source) {
  const auto next = [this](int one) -> int& { return sources_[static_cast<std::size_t>(one)].component; };
  int component = source;
  while (next(component) != component) component = next(component) = next(next(component));
  return component;
}

void FlowPatterns::visit(int source, int pattern, const TakeFlow& take) const {
  const Pattern& all = sources_[static_cast<std::size_t>(source)].patterns[static_cast<std::size_t>(pattern)];
  for (std::size_t flow = 0; flow < all.crossings.flows(); ++flow) {
    take(all.flows[flow % all.flows.size()].colour, all.crossings.of(flow));
  }
}

void FlowPatterns::clear() {
  sources_.clear();
  names_.clear();
  load_.clear();
  busy_.clear();
  is_busy_.clear();
  stands_for_others_.clear();
  is_outdated_ = parts_differ_ = has_new_busy_links_ = has_components_ = has_larger_components_ = false;
}

// A link that the form `now` leaves out, because another link of its class stands for it, carries no flow of a new
// form. It has the capacity of that other link and at most its flows, so it slows nothing down.
bool FlowPatterns::may_stay(const ClassFlow& flow, const ClassFlow& now) const {
  if (flow.colour != now.colour || flow.members != now.members) return false;
  if (flow.route->bandwidth_bytes_per_s != now.route->bandwidth_bytes_per_s) return false;
  const auto times = [&](const ClassFlow& form, const Edge& hop) {
    return std::ranges::count(form.route->hops, direction_of(hop), [&](const Edge& one) { return direction_of(one); });
  };
  const auto is_unchanged = [&](const Edge& hop) { return times(flow, hop) == times(now, hop); };
  return std::ranges::all_of(now.route->hops, is_unchanged) &&
         std::ranges::all_of(flow.route->hops, [&](const Edge& hop) {
           return is_unchanged(hop) || !stands_for_others_[direction_of(hop)];
         });
}

bool FlowPatterns::may_stay(const ClassFlows& flows, const ClassFlows& now) const {
  return &flows == &now || std::ranges::equal(flows, now, [this](const ClassFlow& flow, const ClassFlow& other) {
    return may_stay(flow, other);
  });
}

// Adds up the most that each link would carry. If a source is active several times, each time counts with the pattern
// that is worst for the link.
void FlowPatterns::add_load(Source& source) {
  if (source.loaded_calls == source.concurrent_calls && source.loaded_patterns == source.patterns.size()) return;
  if (source.loaded_patterns == source.patterns.size()) {
    add_load(source, source.patterns.size(), source.concurrent_calls - source.loaded_calls);
  } else {
    if (source.loaded_patterns > 0) add_load(source, source.loaded_patterns, -source.loaded_calls);
    add_load(source, source.patterns.size(), source.concurrent_calls);
  }
  source.loaded_calls = source.concurrent_calls;
  source.loaded_patterns = source.patterns.size();
}

void FlowPatterns::add_load(const Source& source, std::size_t patterns, double factor) {
  std::vector<std::uint32_t> crossed;  // used if there are several patterns
  const auto add = [&](std::uint32_t link, double bytes_per_s) {
    load_[link] += factor * bytes_per_s;
    if (is_busy_[link] || load_[link] <= capacity(link).bytes_per_s * kFull) return;
    is_busy_[link] = has_new_busy_links_ = true;
    busy_.push_back(link);
  };
  for (std::size_t number = 0; number < patterns; ++number) {
    const Pattern& pattern = source.patterns[number];
    for (std::size_t flow = 0; flow < pattern.crossings.flows(); ++flow) {
      for (const std::uint32_t link : pattern.crossings.of(flow)) of_pattern_[link] += pattern.bytes_per_s[flow];
    }
    for (const std::uint32_t link : pattern.crossings.links) {
      const double bytes_per_s = std::exchange(of_pattern_[link], 0.0);
      if (bytes_per_s == 0) continue;
      if (patterns == 1) {
        add(link, bytes_per_s);
        continue;
      }
      if (most_[link] == 0) crossed.push_back(link);
      most_[link] = std::max(most_[link], bytes_per_s);
    }
  }
  for (const std::uint32_t link : crossed) add(link, std::exchange(most_[link], 0.0));
}

bool FlowPatterns::add_apart() {
  for (Source& source : sources_) {
    for (Pattern& pattern : source.patterns) {
      if (pattern.is_new && !make_apart(source, pattern)) return false;
    }
  }
  return true;
}

bool FlowPatterns::make_apart(const Source& source, Pattern& pattern) const {
  if (std::ranges::any_of(pattern.crossings.links, [this](std::uint32_t link) { return is_busy_[link]; })) return false;
  const std::size_t width = pattern.flows.size(), part = width / source.parts;
  for (std::size_t flow = part; flow < pattern.crossings.flows(); ++flow) {
    if (pattern.bytes_per_s[flow] != pattern.bytes_per_s[flow % part]) return false;
    if (pattern.latency_s[flow] != pattern.latency_s[flow % part]) return false;
  }
  ClassFlows class_flows;
  std::map<std::tuple<std::uint32_t, double, double>, std::size_t> seen;
  for (std::size_t flow = 0; flow < width; ++flow) {
    const auto [known, is_new] = seen.try_emplace(
        {colour_of(source, pattern, flow), pattern.bytes_per_s[flow], pattern.latency_s[flow]}, class_flows.size());
    if (!is_new) {
      class_flows[known->second].members.push_back(static_cast<std::uint32_t>(flow));
      continue;
    }
    Route route{.hops = {}, .latency_s = pattern.latency_s[flow], .bandwidth_bytes_per_s = pattern.bytes_per_s[flow]};
    for (const std::uint32_t link : pattern.crossings.of(flow)) route.hops.push_back({link / 2, link % 2 == 0});
    class_flows.push_back({.colour = pattern.flows[flow].colour,
                           .members = {static_cast<std::uint32_t>(flow)},
                           .route = std::make_shared<const Route>(std::move(route))});
  }
  pattern.class_flows = std::make_shared<const ClassFlows>(std::move(class_flows));
  pattern.is_new = false;
  return true;
}

bool FlowPatterns::update(const Split& split) {
  is_outdated_ = false;
  load_.resize(2 * topology_.link_count());
  is_busy_.resize(load_.size());
  stands_for_others_.resize(load_.size());
  of_pattern_.resize(load_.size());
  most_.resize(load_.size());
  tell_phase({.text = "divides the flows of its first step among links"});
  for (Source& source : sources_) add_load(source);
  const bool is_larger = std::exchange(has_larger_components_, false) && !busy_.empty();
  if (!std::exchange(has_new_busy_links_, false) && !is_larger && add_apart()) return true;
  std::vector<std::pair<int, std::vector<std::uint32_t>>> splits;
  const auto keep = [&splits](int worker_class, std::span<const std::uint32_t> part_of_member) {
    splits.emplace_back(worker_class, std::vector(part_of_member.begin(), part_of_member.end()));
  };
  if (divide(keep)) return true;
  if (!std::exchange(has_components_, true)) {
    splits.clear();
    parts_differ_ = false;
    for (Source& source : sources_) source.is_divided = false;
    if (divide(keep)) return true;
  }
  for (const auto& [worker_class, part_of_member] : splits) split(worker_class, part_of_member);
  return false;
}

}  // namespace tandem::sim::symmetry
