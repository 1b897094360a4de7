#include "scenarios/run/assumptions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "scenarios/run/runner.h"
#include "topologies/base/units.h"
#include "topologies/figures.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

struct FigureRange {
  double least = 0, most = 0;

  void add(double value) {
    if (value <= 0) return;
    least = least == 0 ? value : std::min(least, value);
    most = std::max(most, value);
  }
};

// A figure by what has it and its key: a GPU's "sustained", the "latency" of a network.
using FigureKind = std::pair<std::string, std::string>;

// Makers of GPUs differ in what their figures mean.
std::string kind_of(const Node& node) {
  return std::string(name_of(node.kind)) + (node.device->architecture.starts_with("gfx") ? " of AMD" : "");
}

std::string kind_of(const LinkModel& link) {
  return std::string(name_of(link.kind)) + (link.transport.empty() ? "" : " " + link.transport);
}

// Calls `found` with the kind of each figure of the topology, the id and name of the model that has it, and itself.
template <typename Found>
void for_each_figure(const Topology& topology, const Found& found) {
  std::vector<const void*> seen;
  const auto is_new = [&](const void* model) {
    if (std::ranges::find(seen, model) != seen.end()) return false;
    seen.push_back(model);
    return true;
  };
  const auto of_link = [&](const LinkModel& link) {
    if (!is_new(&link)) return;
    for (const auto& [key, figure] : kLinkFigures)
      found(FigureKind(kind_of(link), key), link.id, kind_of(link), link.*figure);
  };
  for (NodeIndex i = 0; i < topology.node_count(); ++i) {
    const Node node = topology.node(i);
    if (node.port) of_link(*node.port);
    if (!node.device || !is_new(node.device.get())) continue;
    for (const auto& [key, figure] : kDeviceFigures)
      found(FigureKind(kind_of(node), key), node.device->id, fmt::format("'{}'", node.device->name),
            (*node.device).*figure);
  }
  for (LinkIndex i = 0; i < topology.link_count(); ++i) of_link(topology.link_model(i));
}

// Every network of the catalog has the same figures of remote calls, which depend on the servers' software more than on
// the network: they may be half or twice as much.
void add_range_of_remote_calls(const FigureKind& kind, double value, FigureRange& range) {
  if (!kind.second.starts_with("remote_call")) return;
  range.add(value / 2);
  range.add(value * 2);
}

std::map<FigureKind, FigureRange> ranges_of_catalog() {
  std::map<FigureKind, FigureRange> ranges;
  for (const std::string& name : catalog_names()) {
    const Topology machine = load_catalog_node(name);
    for_each_figure(machine, [&](const FigureKind& kind, const std::string&, const std::string&, const Figure& figure) {
      const bool is_all = kind.second.starts_with("sustained") && figure.value == 0;  // where nobody states a share
      ranges[kind].add(is_all ? 1 : figure.value);
    });
  }
  return ranges;
}

std::string value_text(const std::string& key, double value) {
  if (key.ends_with("clock")) return format_quantity(value, Dimension::hertz);
  if (key.ends_with("bandwidth")) return format_quantity(value, Dimension::bytes_per_second);
  const bool is_ratio =
      key == "sustained" || key == "sustained_quantised" || key.ends_with("efficiency") || key == "collective_slowdown";
  return is_ratio ? fmt::format("{:.4g}", value) : format_quantity(value, Dimension::seconds);
}

// A figure that decided a time and is assumed.
struct Candidate {
  FigureKind kind{};
  std::string id{}, name{};  // of the model that has it
  Figure figure{};
  FigureRange range{};
};

std::vector<Candidate> candidates_in(const Topology& topology, const std::set<std::string>& consulted) {
  const std::map<FigureKind, FigureRange> ranges = ranges_of_catalog();
  std::map<std::pair<std::string, std::string>, Candidate> found;  // by model and key
  for_each_figure(topology,
                  [&](const FigureKind& kind, const std::string& id, const std::string& name, const Figure& figure) {
                    // Less memory may end a simulation, and is no matter of time.
                    const bool decides = consulted.contains(id + "." + kind.second) && kind.second != "memory";
                    const auto range = ranges.find(kind);
                    if (!decides || figure.provenance != Provenance::assumed || range == ranges.end()) return;
                    Candidate one{.kind = kind, .id = id, .name = name, .figure = figure, .range = range->second};
                    one.range.add(figure.value);
                    add_range_of_remote_calls(kind, figure.value, one.range);
                    if (one.range.least < one.range.most) found.try_emplace({id, kind.second}, std::move(one));
                  });
  std::vector<Candidate> candidates;
  for (auto& [key, one] : found) candidates.push_back(std::move(one));
  return candidates;
}

Topology with_figure(const Topology& topology, const Candidate& one, double value) {
  Topology changed = topology;
  const auto set = [&](auto model, const auto& figures) {
    for (const auto& [key, figure] : figures) {
      if (key == one.kind.second) (model.*figure).value = value;
    }
    return std::make_shared<const decltype(model)>(std::move(model));
  };
  changed.replace_devices([&](NodeKind, const DeviceModel& model) {
    return model.id == one.id ? set(model, kDeviceFigures) : std::shared_ptr<const DeviceModel>();
  });
  changed.replace_links([&](const LinkModel& model) {
    return model.id == one.id ? set(model, kLinkFigures) : std::shared_ptr<const LinkModel>();
  });
  return changed;
}

Nanoseconds step_on(const Scenario& scenario, std::shared_ptr<const Topology> topology) {
  Scenario other = scenario;
  other.topology = std::move(topology);
  const RunOptions options{.measures_scaling = false,
                           .is_quick = true,
                           .figures = Figures::of_steps,
                           .only_report = true,
                           .has_all_memory = true};
  return run_scenario(other, options).report.summary.step_time.mean;
}

constexpr double kLeastEffect = 0.001;  // what moves a step by less is not shown

double effect_on(Nanoseconds step, const Assumption& one) {
  return static_cast<double>(std::max(std::abs(one.step_from - step), std::abs(one.step_to - step))) /
         static_cast<double>(step);
}

}  // namespace

std::vector<Assumption> assumptions_of(const Scenario& scenario, const RunResult& result) {
  if (!result.report.deterministic || result.topology == nullptr) return {};
  const Topology& topology = *result.topology;
  const Nanoseconds step = result.report.summary.step_time.mean, quick = step_on(scenario, result.topology);
  if (step <= 0 || quick <= 0) return {};
  // Quick simulations may differ a little from whole ones; what counts is by how much a figure changes them.
  const auto step_with = [&](const Candidate& one, double value) {
    const Nanoseconds changed = step_on(scenario, std::make_shared<const Topology>(with_figure(topology, one, value)));
    return static_cast<Nanoseconds>(
        std::llround(static_cast<double>(step) * static_cast<double>(changed) / static_cast<double>(quick)));
  };
  std::vector<Assumption> all;
  for (const Candidate& one : candidates_in(topology, result.timeline.consulted)) {
    const std::string& key = one.kind.second;
    Assumption assumption{.figure = fmt::format("{} of {}", key, one.name),
                          .value = value_text(key, one.figure.value),
                          .source = one.figure.source,
                          .from = value_text(key, one.range.least),
                          .to = value_text(key, one.range.most),
                          .step_from = step_with(one, one.range.least),
                          .step_to = step_with(one, one.range.most)};
    if (effect_on(step, assumption) > kLeastEffect) all.push_back(std::move(assumption));
  }
  std::ranges::stable_sort(all, std::greater(), [step](const Assumption& one) { return effect_on(step, one); });
  all.resize(std::min(all.size(), kShownAssumptions));
  return all;
}

}  // namespace tandem
