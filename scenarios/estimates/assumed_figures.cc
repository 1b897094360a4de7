#include "scenarios/estimates/assumed_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

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

constexpr const char* kPeerAccess = "p2p";

std::string value_text(const std::string& key, double value) {
  if (key == kPeerAccess) return value == 0 ? "no" : "yes";
  if (key.ends_with("clock")) return format_quantity(value, Dimension::hertz);
  if (key.ends_with("bandwidth")) return format_quantity(value, Dimension::bytes_per_second);
  const bool is_ratio =
      key == "sustained" || key == "sustained_quantised" || key.ends_with("efficiency") || key == "collective_slowdown";
  return is_ratio ? fmt::format("{:.4g}", value) : format_quantity(value, Dimension::seconds);
}

// Returns what the figure may be: what its file says, or what it is elsewhere.
std::optional<FigureRange> range_of(const Figure& figure, const FigureKind& kind,
                                    const std::map<FigureKind, FigureRange>& of_catalog) {
  if (figure.has_range()) return FigureRange{figure.low, figure.high};
  const auto known = of_catalog.find(kind);
  if (figure.provenance != Provenance::assumed || known == of_catalog.end()) return std::nullopt;
  FigureRange range = known->second;
  range.add(figure.value);
  return range.least < range.most ? std::optional(range) : std::nullopt;
}

// Whether GPUs reach each other's memory over PCIe depends on the machine's board, its firmware and the driver.
AssumedFigure peer_access(const Topology& topology) {
  const double value = topology.facts().p2p ? 1 : 0;
  return {.key = kPeerAccess,
          .what = "p2p of the machine",
          .figure = {.value = value, .source = "the machine's file does not say it"},
          .least = 0,
          .most = 1,
          .value = value_text(kPeerAccess, value),
          .from = value_text(kPeerAccess, 0),
          .to = value_text(kPeerAccess, 1)};
}

}  // namespace

std::vector<AssumedFigure> assumed_figures(const Topology& topology, const std::set<std::string>& consulted,
                                           FigureRanges ranges) {
  const auto of_catalog =
      ranges == FigureRanges::of_catalog ? ranges_of_catalog() : std::map<FigureKind, FigureRange>();
  std::map<std::pair<std::string, std::string>, AssumedFigure> found;  // by model and key
  for_each_figure(topology,
                  [&](const FigureKind& kind, const std::string& id, const std::string& name, const Figure& figure) {
                    const std::string& key = kind.second;
                    // Less memory may end a simulation, and is no matter of time.
                    if (!consulted.contains(id + "." + key) || key == "memory") return;
                    const auto range = range_of(figure, kind, of_catalog);
                    if (!range) return;
                    found.try_emplace({id, key}, AssumedFigure{.key = key,
                                                               .id = id,
                                                               .what = fmt::format("{} of {}", key, name),
                                                               .figure = figure,
                                                               .least = range->least,
                                                               .most = range->most,
                                                               .value = value_text(key, figure.value),
                                                               .from = value_text(key, range->least),
                                                               .to = value_text(key, range->most)});
                  });
  std::vector<AssumedFigure> figures;
  for (auto& [key, one] : found) figures.push_back(std::move(one));
  if (consulted.contains("machine.p2p") && !topology.facts().p2p_is_stated) figures.push_back(peer_access(topology));
  return figures;
}

std::shared_ptr<const Topology> with_figure(const Topology& topology, const AssumedFigure& one, double value) {
  Topology changed = topology;
  if (one.key == kPeerAccess) changed.facts().p2p = value != 0;
  const auto set = [&](auto model, const auto& figures) {
    for (const auto& [key, figure] : figures) {
      if (key == one.key) (model.*figure).value = value;
    }
    return std::make_shared<const decltype(model)>(std::move(model));
  };
  changed.replace_devices([&](NodeKind, const DeviceModel& model) {
    return model.id == one.id ? set(model, kDeviceFigures) : std::shared_ptr<const DeviceModel>();
  });
  changed.replace_links([&](const LinkModel& model) {
    return model.id == one.id ? set(model, kLinkFigures) : std::shared_ptr<const LinkModel>();
  });
  return std::make_shared<const Topology>(std::move(changed));
}

}  // namespace tandem
