#include "topologies/readers/node_overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topologies/base/units.h"
#include "topologies/readers/models_yaml.h"

namespace tandem {
namespace {

constexpr std::size_t kMostSuggestions = 1 << 14;  // names among which a nearest one is looked for

// `*` is any text, `?` any character.
bool is_match(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, star = std::string_view::npos, resume = 0, i = 0;
  while (i < name.size()) {
    if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[i]) && pattern[at] != '*') {
      ++at;
      ++i;
    } else if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

// Returns the length of "w12." at the beginning of a name, or 0.
std::size_t worker_prefix(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (!name.starts_with('w') || dot == std::string_view::npos || dot < 2) return 0;
  const std::string_view digits = name.substr(1, dot - 1);
  return digits.find_first_not_of("0123456789") == std::string_view::npos ? dot + 1 : 0;
}

bool names(std::string_view pattern, const Topology& topology, NodeIndex index) {
  std::string name = topology.node(index).name;
  if (is_match(pattern, name)) return true;
  const std::size_t prefix = worker_prefix(name);
  if (is_match(pattern, std::string_view(name).substr(prefix))) return true;
  const int worker = topology.worker(index);
  return prefix == 0 && worker != kNoWorker && is_match(pattern, fmt::format("w{}.{}", worker, name));
}

std::set<NodeIndex> nodes_named(std::string_view pattern, const Topology& topology) {
  std::set<NodeIndex> found;
  if (const auto exact = topology.find(pattern)) return {*exact};
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    if (names(pattern, topology, index)) found.insert(index);
  }
  return found;
}

double read_slowdown(const YamlReader& map) {
  return map.optional("slowdown").number({.least = kSlowdowns.least, .most = kSlowdowns.most, .otherwise = 1});
}

void scale(Figure& figure, double factor, const std::string& source) {
  if (figure.value == 0) return;
  figure.value *= factor;
  figure.provenance = Provenance::assumed;
  figure.source = source + (figure.source.empty() ? "" : ": " + figure.source);
}

void scale(std::vector<RateSample>& samples, double factor) {
  for (RateSample& sample : samples) sample.bytes_per_s *= factor;
}

void slow_down(DeviceRates& rates, double slowdown) {
  for (GemmSample& sample : rates.gemm) sample.flops_per_s /= slowdown;
  scale(rates.memory, 1 / slowdown);
  scale(rates.copy, 1 / slowdown);
  for (auto& [kernel, samples] : rates.kernels) scale(samples, 1 / slowdown);
  rates.op_overhead_s *= slowdown;
  rates.graph_op_overhead_s *= slowdown;
}

// What the host does for a GPU keeps its time.
void slow_down(DeviceModel& model, double slowdown, const std::string& file) {
  const std::string source = fmt::format("slowed down by {:.6g} in {}", slowdown, file);
  for (auto& [dtype, peak] : model.peak_flops_per_s) scale(peak, 1 / slowdown, source);
  for (Figure* rate : {&model.memory_bandwidth_bytes_per_s, &model.boost_clock_hz}) scale(*rate, 1 / slowdown, source);
  for (Figure* time : {&model.memory_latency_s, &model.op_overhead_s, &model.graph_op_overhead_s}) {
    scale(*time, slowdown, source);
  }
  for (DeviceRates& rates : model.rates) slow_down(rates, slowdown);
}

FigureOrigin origin_of(const YamlReader& map) {
  return read_origin(map, {Provenance::assumed, "overridden in " + map.file(), ""});
}

// Models of several nodes stay one model.
template <typename Model>
class Changed {
 public:
  explicit Changed(const YamlReader& map) : map_(map) {}
  std::shared_ptr<const Model> of(const std::shared_ptr<const Model>& model) {
    auto& known = known_[model];
    if (!known) known = std::make_shared<const Model>(overridden(*model, map_));
    return known;
  }

 private:
  const YamlReader& map_;
  std::map<std::shared_ptr<const Model>, std::shared_ptr<const Model>> known_;
};

class Application {
 public:
  Application(const NodeOverride& change, Topology& topology)
      : change_(change), topology_(topology), devices_(change.map), links_(change.map) {}

  bool run() {
    const std::size_t dash = change_.key.find(" - ");
    if (dash != std::string::npos) {
      change_between(nodes_named(std::string_view(change_.key).substr(0, dash), topology_),
                     nodes_named(std::string_view(change_.key).substr(dash + 3), topology_));
    } else {
      change_nodes(nodes_named(change_.key, topology_));
    }
    if (changed_ > 0) note();
    return changed_ > 0;
  }

 private:
  void change_nodes(const std::set<NodeIndex>& nodes) {
    std::set<NodeIndex> nics, switches;
    for (const NodeIndex index : nodes) {
      const Node node = topology_.node(index);
      if (node.device) {
        topology_.set_device(index, devices_.of(node.device));
      } else if (node.kind == NodeKind::nic) {
        if (node.port) topology_.set_port(index, links_.of(node.port));
        nics.insert(index);
      } else {
        switches.insert(index);
      }
      count(node.name);
    }
    if (nics.empty() && switches.empty()) return;
    change_links([&](const Link& link) {
      const bool is_cable =
          link.model->kind == LinkKind::network && (nics.contains(link.from) || nics.contains(link.to));
      return is_cable || switches.contains(link.from) || switches.contains(link.to);
    });
  }

  void change_between(const std::set<NodeIndex>& some, const std::set<NodeIndex>& others) {
    change_links([&](const Link& link) {
      const bool is_named = (some.contains(link.from) && others.contains(link.to)) ||
                            (some.contains(link.to) && others.contains(link.from));
      if (is_named) count(topology_.node(link.from).name + " - " + topology_.node(link.to).name);
      return is_named;
    });
  }

  template <typename IsNamed>
  void change_links(IsNamed&& is_named) {
    for (LinkIndex index = 0; index < topology_.link_count(); ++index) {
      const Link link = topology_.link(index);
      if (is_named(link)) topology_.set_link_model(index, links_.of(link.model));
    }
  }

  void count(const std::string& name) {
    if (changed_++ == 0) first_ = name;
  }

  void note() const {
    std::string figures;
    for (const YamlNode::Entry& entry : change_.map.node()->entries) {
      figures += figures.empty() ? "" : ", ";
      figures += entry.value->kind == YamlKind::scalar ? entry.key + " " + entry.value->text : entry.key;
    }
    topology_.add_note(fmt::format("overridden: {}{}: {}", first_,
                                   changed_ > 1 ? fmt::format(" and {} more", changed_ - 1) : "", figures));
  }

  const NodeOverride& change_;
  Topology& topology_;
  Changed<DeviceModel> devices_;
  Changed<LinkModel> links_;
  std::size_t changed_ = 0;
  std::string first_{};
};

}  // namespace

DeviceModel overridden(const DeviceModel& model, const YamlReader& map) {
  DeviceModel changed = model;
  changed.name = map.optional("name").text(changed.name);
  if (map.has("name") && map.has("peak_flops")) changed.peak_flops_per_s.clear();  // another device
  read_device_figures(map, origin_of(map), changed);
  const double slowdown = read_slowdown(map);
  if (slowdown > 1) slow_down(changed, slowdown, map.file());
  return changed;
}

LinkModel overridden(const LinkModel& model, const YamlReader& map) {
  LinkModel changed = model;
  read_link_figures(map, origin_of(map), changed);
  const double slowdown = read_slowdown(map);
  if (slowdown > 1) {
    scale(changed.bandwidth_bytes_per_s, 1 / slowdown,
          fmt::format("slowed down by {:.6g} in {}", slowdown, map.file()));
  }
  return changed;
}

std::vector<NodeOverride> node_overrides(const std::string& key, const YamlReader& map) {
  const bool is_worker = map.is_map() && !map.node()->entries.empty() && worker_prefix(key + ".") > 0 &&
                         std::ranges::all_of(map.node()->entries, [](const YamlNode::Entry& entry) {
                           return entry.value != nullptr && entry.value->kind == YamlKind::map;
                         });
  if (!is_worker) return {{key, map}};
  std::vector<NodeOverride> changes;
  for (const auto& [name, value] : map.entries()) changes.push_back({key + "." + name, value});
  return changes;
}

bool is_for_every_machine(const std::string& key) {
  if (key.starts_with("*.") || key.starts_with("w*.")) return true;
  if (key.find('.') != std::string::npos) return false;
  for (std::size_t begin = 0; begin != std::string::npos;) {  // both ends of "gpu0 - w1*"
    const bool is_of_some = key.size() > begin + 1 && key[begin] == 'w' &&
                            std::string_view("0123456789?").find(key[begin + 1]) != std::string_view::npos;
    if (is_of_some) return false;
    const std::size_t dash = key.find(" - ", begin);
    begin = dash == std::string::npos ? dash : dash + 3;
  }
  return true;
}

bool apply(const NodeOverride& change, Topology& topology) {
  return Application(change, topology).run();
}

void report_unknown(const NodeOverride& change, const Topology& topology, std::vector<std::string> models) {
  for (NodeIndex index = 0; index < topology.node_count() && models.size() < kMostSuggestions; ++index) {
    models.push_back(topology.node(index).name);
  }
  change.map.unknown_word("device or link model, or node", change.key, models);
}

}  // namespace tandem
