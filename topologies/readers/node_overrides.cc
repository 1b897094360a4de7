#include "topologies/readers/node_overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topologies/base/units.h"
#include "topologies/figures.h"
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

using Layers = std::vector<const YamlReader*>;  // the values of keys, in the order of the file

// Returns the slowdown that counts, and the file that states it.
std::pair<double, std::string> slowdown_of(const Layers& layers) {
  std::pair<double, std::string> slowdown{1, ""};
  for (const YamlReader* map : layers) {
    if (const double stated = read_slowdown(*map); map->has("slowdown")) slowdown = {stated, map->file()};
  }
  return slowdown;
}

DeviceModel overridden(const DeviceModel& model, const Layers& layers) {
  DeviceModel changed = model;
  for (const YamlReader* map : layers) {
    changed.name = map->optional("name").text(changed.name);
    if (map->has("name") && map->has("peak_flops")) changed.peak_flops_per_s.clear();  // another device
    read_device_figures(*map, origin_of(*map), changed);
  }
  if (const auto [slowdown, file] = slowdown_of(layers); slowdown > 1) slow_down(changed, slowdown, file);
  return changed;
}

LinkModel overridden(const LinkModel& model, const Layers& layers) {
  LinkModel changed = model;
  for (const YamlReader* map : layers) read_link_figures(*map, origin_of(*map), changed);
  if (const auto [slowdown, file] = slowdown_of(layers); slowdown > 1) {
    scale(changed.bandwidth_bytes_per_s, 1 / slowdown, fmt::format("slowed down by {:.6g} in {}", slowdown, file));
  }
  return changed;
}

// Models that are changed in the same way stay one model.
template <typename Model>
class Changed {
 public:
  std::shared_ptr<const Model> of(const std::shared_ptr<const Model>& model, const Layers& layers) {
    auto& known = known_[{model, layers}];
    if (!known) known = std::make_shared<const Model>(overridden(*model, layers));
    return known;
  }

 private:
  std::map<std::pair<std::shared_ptr<const Model>, Layers>, std::shared_ptr<const Model>> known_{};
};

// What a key names.
struct Named {
  bool is_model = false;
  std::vector<std::string> names{};  // of nodes, or of links between two nodes
  std::set<NodeIndex> devices{}, ports{};
  std::set<LinkIndex> links{};
  bool empty() const { return names.empty() && devices.empty() && ports.empty() && links.empty(); }
};

template <typename IsNamed>
void add_links(const Topology& topology, Named& named, IsNamed&& is_named) {
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    if (is_named(topology.link(index))) named.links.insert(index);
  }
}

Named with_model(const std::string& id, const Topology& topology) {
  Named named{.is_model = true};
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    if (const auto& device = topology.device(index); device && device->id == id) named.devices.insert(index);
    if (topology.kind(index) != NodeKind::nic) continue;
    if (const auto port = topology.node(index).port; port && port->id == id) named.ports.insert(index);
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    if (topology.link_model(index).id == id) named.links.insert(index);
  }
  return named;
}

Named between(const std::set<NodeIndex>& some, const std::set<NodeIndex>& others, const Topology& topology) {
  Named named;
  add_links(topology, named, [&](const Link& link) {
    const bool is_named = (some.contains(link.from) && others.contains(link.to)) ||
                          (some.contains(link.to) && others.contains(link.from));
    if (is_named) named.names.push_back(topology.node(link.from).name + " - " + topology.node(link.to).name);
    return is_named;
  });
  return named;
}

Named with_nodes(const std::set<NodeIndex>& nodes, const Topology& topology) {
  Named named;
  std::set<NodeIndex> nics, switches;
  for (const NodeIndex index : nodes) {
    const Node node = topology.node(index);
    named.names.push_back(node.name);
    if (node.device) {
      named.devices.insert(index);
    } else if (node.kind == NodeKind::nic) {
      if (node.port) named.ports.insert(index);
      nics.insert(index);
    } else {
      switches.insert(index);
    }
  }
  if (nics.empty() && switches.empty()) return named;
  add_links(topology, named, [&](const Link& link) {
    const bool is_cable = link.model->kind == LinkKind::network && (nics.contains(link.from) || nics.contains(link.to));
    return is_cable || switches.contains(link.from) || switches.contains(link.to);
  });
  return named;
}

Named named_by(const std::string& key, const Topology& topology) {
  if (Named models = with_model(key, topology); !models.empty()) return models;
  const std::size_t dash = key.find(" - ");
  if (dash == std::string::npos) return with_nodes(nodes_named(key, topology), topology);
  return between(nodes_named(std::string_view(key).substr(0, dash), topology),
                 nodes_named(std::string_view(key).substr(dash + 3), topology), topology);
}

std::string note_of(const Named& named, const YamlReader& map) {
  std::string figures;
  for (const YamlNode::Entry& entry : map.node()->entries) {
    figures += figures.empty() ? "" : ", ";
    figures += entry.value->kind == YamlKind::scalar ? entry.key + " " + entry.value->text : entry.key;
  }
  const std::size_t count = named.names.size();
  return fmt::format("overridden: {}{}: {}", named.names.front(),
                     count > 1 ? fmt::format(" and {} more", count - 1) : "", figures);
}

// Returns the names that a key may have: of models, nodes, and nodes of every machine, as this key writes them.
std::vector<std::string> possible_names(std::string_view key, const Topology& topology) {
  std::set<std::string> models;
  std::vector<std::string> names;
  const std::string_view first = key.substr(0, key.find('.') + 1);  // "*.", "w?."; "" if there is no dot
  const bool is_pattern = first.find_first_of("*?") != std::string_view::npos;
  for (NodeIndex index = 0; index < topology.node_count() && names.size() < kMostSuggestions; ++index) {
    const Node node = topology.node(index);
    names.push_back(node.name);
    const std::string_view in_machine = std::string_view(node.name).substr(worker_prefix(node.name));
    if (node.worker == 0 && is_pattern) names.push_back(fmt::format("{}{}", first, in_machine));
    if (node.device) models.insert(node.device->id);
    if (node.port) models.insert(node.port->id);
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) models.insert(topology.link_model(index).id);
  names.insert(names.begin(), models.begin(), models.end());
  return names;
}

void report_unknown(const std::string& key, const YamlReader& map, const Topology& topology) {
  const auto report = [&](const std::string& name) {
    map.unknown_word("device or link model, or node", name, possible_names(name, topology));
  };
  const std::size_t dash = key.find(" - ");
  if (dash == std::string::npos) return report(key);
  for (const std::string& end : {key.substr(0, dash), key.substr(dash + 3)}) {
    if (nodes_named(end, topology).empty()) return report(end);
  }
  map.error(fmt::format("no link joins '{}' and '{}'", key.substr(0, dash), key.substr(dash + 3)));
}

// Whether a part of the name of a worker and of the fabric, before whose dot an override may be divided into maps.
bool is_first_part(std::string_view key) {
  if (key == "fabric" || key == "*") return true;
  return key.size() > 1 && key[0] == 'w' && key.substr(1).find_first_not_of("0123456789*?") == std::string_view::npos;
}

// Whether the map has an override for each of several names: `w1: {gpu3: {slowdown: 2}}`.
bool is_divided(const std::string& key, const YamlReader& map) {
  if (!is_first_part(key) || !map.is_map() || map.node()->entries.empty()) return false;
  return std::ranges::all_of(map.node()->entries, [](const YamlNode::Entry& entry) {
    return entry.value->kind == YamlKind::map && entry.key != "peak_flops" && !is_figure_key(entry.key);
  });
}

// Whether the key names nodes of every machine.
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

template <typename Index>
using LayersOf = std::map<Index, Layers>;

// Adds the layer to those elements of `named` that are changed.
template <typename Index>
void add_layer(const std::set<Index>& named, const YamlReader& map, LayersOf<Index>& changed) {
  for (auto& [index, layers] : changed) {
    if (named.contains(index)) layers.push_back(&map);
  }
}

template <typename Index>
void add_elements(const std::set<Index>& named, LayersOf<Index>& changed) {
  for (const Index index : named) changed[index];
}

}  // namespace

std::set<NodeIndex> nodes_named(std::string_view pattern, const Topology& topology) {
  std::set<NodeIndex> found;
  if (const auto exact = topology.find(pattern)) return {*exact};
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    if (names(pattern, topology, index)) found.insert(index);
  }
  return found;
}

Overrides::Overrides(const YamlReader& map) {
  if (!map) return;
  for (const auto& [key, value] : map.entries()) {
    if (!is_divided(key, value)) {
      keys_.push_back({key, value});
      continue;
    }
    for (const auto& [name, below] : value.entries()) keys_.push_back({key + "." + name, below});
  }
}

// Every element that is changed gets all keys that name it, in the order of the file. What no key for every machine
// names is changed as it is in `topology`, since the fabric may have made it of what such keys changed: an uplink is as
// wide as the ports below it.
void Overrides::change(const Topology& plain, Topology& topology, Use use) const {
  LayersOf<NodeIndex> devices, ports;
  LayersOf<LinkIndex> links;
  std::vector<Named> named;
  for (const Key& key : keys_) {
    const Named& one = named.emplace_back(named_by(key.name, plain));
    if (use == Use::others && key.is_in_every_machine) continue;
    if (one.empty()) report_unknown(key.name, key.map, plain);
    if (!one.names.empty()) topology.facts().notes.push_back(note_of(one, key.map));
    add_elements(one.devices, devices);
    add_elements(one.ports, ports);
    add_elements(one.links, links);
  }
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    add_layer(named[i].devices, keys_[i].map, devices);
    add_layer(named[i].ports, keys_[i].map, ports);
    add_layer(named[i].links, keys_[i].map, links);
  }
  const auto base_of = [&](const auto index, const auto elements) -> const Topology& {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i].is_in_every_machine && (named[i].*elements).contains(index)) return plain;
    }
    return topology;
  };
  Changed<DeviceModel> device_models;
  Changed<LinkModel> link_models;
  std::vector<std::pair<NodeIndex, std::shared_ptr<const DeviceModel>>> new_devices;
  for (const auto& [index, layers] : devices) {
    new_devices.emplace_back(index, device_models.of(base_of(index, &Named::devices).device(index), layers));
  }
  std::vector<std::pair<NodeIndex, std::shared_ptr<const LinkModel>>> new_ports;
  for (const auto& [index, layers] : ports) {
    new_ports.emplace_back(index, link_models.of(base_of(index, &Named::ports).node(index).port, layers));
  }
  std::vector<std::pair<LinkIndex, std::shared_ptr<const LinkModel>>> new_links;
  for (const auto& [index, layers] : links) {
    new_links.emplace_back(index, link_models.of(base_of(index, &Named::links).link(index).model, layers));
  }
  for (auto& [index, model] : new_devices) topology.set_device(index, std::move(model));
  for (auto& [index, model] : new_ports) topology.set_port(index, std::move(model));
  for (auto& [index, model] : new_links) topology.set_link_model(index, std::move(model));
  topology.share_alike_machines();
}

void Overrides::apply(Topology& topology) const {
  change(topology, topology, Use::all);
}

Topology Overrides::in_every_machine(const Topology& machine) {
  Overrides in_every;
  for (Key& key : keys_) {
    const Named named = named_by(key.name, machine);
    key.is_in_every_machine = named.is_model ? !named.empty() : is_for_every_machine(key.name) && !named.empty();
    if (key.is_in_every_machine) in_every.keys_.push_back(key);
  }
  Topology changed = machine;
  in_every.apply(changed);
  return changed;
}

bool Overrides::has_others() const {
  return std::ranges::any_of(keys_, [](const Key& key) { return !key.is_in_every_machine; });
}

void Overrides::apply_others(const Topology& plain, Topology& cluster) const {
  change(plain, cluster, Use::others);
}

}  // namespace tandem
