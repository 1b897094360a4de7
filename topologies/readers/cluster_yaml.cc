#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topologies/figures.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/models_yaml.h"
#include "topologies/readers/topology_forms.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

void read_optional(const YamlReader& value, Dimension dimension, const FigureOrigin& origin,
                   std::optional<Figure>& figure) {
  if (value.present()) read_figure(value, dimension, origin, dimension == Dimension::seconds, figure.emplace());
}

// Refuses figures that belong to other kinds of fabrics. Figures of cables belong to all.
void refuse_foreign_figures(const YamlReader& map, FabricKind kind) {
  using enum FabricKind;
  static const std::map<std::string, std::set<FabricKind>> kOwners{
      {"workers_per_leaf", {leaf_spine, rail, fat_tree, dragonfly}},
      {"spines", {leaf_spine, rail, fat_tree, dragonfly}},
      {"oversubscription", {leaf_spine, rail, fat_tree, torus, dragonfly}},
      {"leaves_per_pod", {fat_tree, dragonfly}},
      {"cores_per_spine", {fat_tree}},
      {"core_oversubscription", {fat_tree, dragonfly}},
      {"rails", {fat_tree, dragonfly}},
      {"dimensions", {torus}},
  };
  for (const auto& [key, owners] : kOwners) {
    if (owners.contains(kind) || !map.has(key)) continue;
    map.optional(key).error(kind == single_switch
                                ? "has no meaning for a single switch"
                                : fmt::format("has no meaning for a fabric of kind {}", name_of(kind)));
  }
}

Fabric read_fabric(const YamlReader& map) {
  static const YamlReader::Words<FabricKind> kKinds{{"switch", FabricKind::single_switch},
                                                    {"leaf_spine", FabricKind::leaf_spine},
                                                    {"rail", FabricKind::rail},
                                                    {"fat_tree", FabricKind::fat_tree},
                                                    {"torus", FabricKind::torus},
                                                    {"dragonfly", FabricKind::dragonfly}};
  Fabric fabric;
  if (map.is_scalar()) fabric.kind = map.one_of(kKinds, FabricKind::single_switch);
  if (!map.present() || map.is_scalar()) return fabric;
  fabric.kind = map.required("kind").one_of(kKinds, FabricKind::single_switch);
  const FigureOrigin origin = read_origin(map, {Provenance::assumed, "stated in " + map.file(), ""});
  read_optional(map.optional("latency"), Dimension::seconds, origin, fabric.latency_s);
  read_optional(map.optional("hop_latency"), Dimension::seconds, origin, fabric.hop_latency_s);
  read_optional(map.optional("advertised_latency"), Dimension::seconds, origin, fabric.advertised_latency_s);
  if (const YamlReader transport = map.optional("transport")) fabric.transport = read_transport(transport);
  read_optional(map.optional("nic_bandwidth"), Dimension::bytes_per_second, origin, fabric.nic_bandwidth_bytes_per_s);
  refuse_foreign_figures(map, fabric.kind);
  for (const YamlReader& nic : map.optional("nics").list()) fabric.nics.push_back(nic.text());
  if (map.has("nics") && map.optional("nics").is_list() && fabric.nics.empty()) {
    map.optional("nics").error("needs at least one NIC");
  }
  fabric.workers_per_leaf = map.optional("workers_per_leaf").integer(1, 1 << 20, fabric.workers_per_leaf);
  fabric.spines = map.optional("spines").integer(1, 4096, fabric.spines);
  fabric.oversubscription = map.optional("oversubscription").number_within(kOversubscriptions, 1);
  fabric.leaves_per_pod = map.optional("leaves_per_pod").integer(1, 1 << 20, fabric.leaves_per_pod);
  fabric.cores_per_spine = map.optional("cores_per_spine").integer(1, 4096, fabric.cores_per_spine);
  fabric.core_oversubscription = map.optional("core_oversubscription").number_within(kOversubscriptions, 1);
  fabric.rails = map.optional("rails").boolean(false);
  for (const YamlReader& size : map.optional("dimensions").list()) {
    fabric.dimensions.push_back(size.integer(1, 1 << 20, 1));
  }
  if (fabric.kind == FabricKind::torus && fabric.dimensions.empty()) {
    map.required("dimensions").error("needs the number of machines along each dimension, such as [4, 4, 8]");
  }
  return fabric;
}

// Returns `count` of a machine's NICs, at even distances.
std::vector<std::string> some_nics(const YamlReader& count, const Topology& machine) {
  std::vector<std::string> all, chosen;
  for (const NodeIndex node : machine.nodes_of(0, NodeKind::nic)) {
    if (machine.node(node).port) all.push_back(machine.node(node).name);
  }
  const auto most = static_cast<int>(all.size());
  const int wanted = count.integer(1, 1 << 10, 1);
  if (wanted > most) {
    count.error(fmt::format("the machine has {} NICs", most));
    return all;
  }
  for (int i = 0; i < most; ++i) {
    if ((i + 1) * wanted / most > i * wanted / most) chosen.push_back(all[static_cast<std::size_t>(i)]);
  }
  return chosen;
}

// Asks for every key that is not read if another value is wrong, so that finish() does not report it as unknown.
void check_fabric_keys(const YamlReader& cluster) {
  const YamlReader hosts = cluster.optional("hosts"), nics = cluster.optional("nics");
  cluster.optional("overrides");
  const bool has_file = has_fabric_file(cluster);
  if (hosts && !has_file) hosts.error("needs a fabric file, such as `fabric: ./topology.conf`");
  if (nics && has_file)
    nics.error("has no meaning with a fabric file, whose ports are the machine's NICs in their order");
}

// Adds the keys at and below `path`, which is that of a figure of a model. What is said about a figure, such as its
// source, decides nothing. The nodes are looked at without a reader, for which every key that it returns is known.
void add_stated(const YamlNode& value, const std::string& path, const std::string& figure,
                std::vector<StatedKey>& stated) {
  static const std::set<std::string> kRemarks{"provenance", "source", "date", "spread", "low", "high", "name"};
  const auto is_value = [](const YamlNode::Entry& entry) { return entry.key == "value"; };
  if (value.kind != YamlKind::map || std::any_of(value.entries.begin(), value.entries.end(), is_value)) {
    if (is_figure_key(figure.substr(figure.find('.') + 1))) stated.push_back({path, {figure}});
    return;
  }
  for (const YamlNode::Entry& entry : value.entries) {
    if (kRemarks.contains(entry.key)) continue;
    add_stated(*entry.value, fmt::format("{}.{}", path, entry.key), fmt::format("{}.{}", figure, entry.key), stated);
  }
}

// Returns the models of the first machine and of the network, as far as they have a name.
std::set<std::string> ids_of_models(const Topology& cluster) {
  std::set<std::string> ids;
  for (const NodeKind kind : {NodeKind::cpu, NodeKind::gpu, NodeKind::nic}) {
    for (const NodeIndex index : cluster.nodes_of(0, kind)) {
      const Node node = cluster.node(index);
      if (node.device) ids.insert(node.device->id);
      if (node.port) ids.insert(node.port->id);
    }
  }
  for (LinkIndex link = 0; link < cluster.link_count(); ++link) ids.insert(cluster.link_model(link).id);
  return ids;
}

// Returns the ids of the models of the cables to a machine's NICs.
std::set<std::string> ids_of_cables(const Topology& cluster) {
  std::set<std::string> ids;
  for (const NodeIndex nic : cluster.nodes_of(0, NodeKind::nic)) {
    if (const auto port = cluster.node(nic).port) ids.insert(port->id);
  }
  return ids;
}

// Adds the keys of a fabric. Its form decides something where data crosses links between its switches.
void add_stated_of_fabric(const YamlReader& fabric, const Topology& cluster, std::vector<StatedKey>& stated) {
  static const std::map<std::string, std::string> kFigures{{"latency", "latency"},
                                                           {"hop_latency", "hop_latency"},
                                                           {"advertised_latency", "advertised_latency"},
                                                           {"transport", "transport"},
                                                           {"nic_bandwidth", "bandwidth"}};
  static const std::set<std::string> kNoFigures{"nics", "provenance", "source", "date"};
  const std::string form = fmt::format("{}.bandwidth", kUplink);
  if (fabric.is_scalar()) stated.push_back({fabric.path(), {form}});
  if (!fabric.is_map()) return;
  for (const YamlNode::Entry& entry : fabric.node()->entries) {
    if (kNoFigures.contains(entry.key)) continue;
    StatedKey& one = stated.emplace_back(StatedKey{fmt::format("{}.{}", fabric.path(), entry.key), {}});
    const auto figure = kFigures.find(entry.key);
    if (figure == kFigures.end()) {
      one.decides = {form};
      continue;
    }
    for (const std::string& id : ids_of_cables(cluster))
      one.decides.push_back(fmt::format("{}.{}", id, figure->second));
  }
}

// Returns what somebody wrote about the cluster, as figures of its models.
std::vector<StatedKey> stated_keys_of(const YamlReader& map, const Topology& cluster) {
  std::vector<StatedKey> stated;
  const YamlReader overrides = map.optional("overrides");
  const std::set<std::string> ids = overrides.is_map() ? ids_of_models(cluster) : std::set<std::string>();
  if (overrides.is_map()) {
    for (const YamlNode::Entry& entry : overrides.node()->entries) {
      const std::string path = fmt::format("{}.{}", overrides.path(), entry.key);
      if (ids.contains(entry.key)) add_stated(*entry.value, path, entry.key, stated);
    }
  }
  if (!has_fabric_file(map)) add_stated_of_fabric(map.optional("fabric"), cluster, stated);
  return stated;
}

// Makes the cluster of its machine by `make`, with overrides of the machine and of single nodes.
template <typename Make>
std::optional<Topology> with_overrides(const YamlReader& map, const Topology& machine, const Make& make) {
  Overrides overrides(map);
  auto cluster = make(map ? overrides.in_every_machine(machine) : machine);
  if (!cluster || !overrides.has_others()) return cluster;
  if (const auto plain = make(machine)) overrides.apply_others(*plain, *cluster);
  return cluster;
}

// A job may have fewer machines of each NVLink domain than a rack has.
void read_domain(const YamlReader& domain, std::optional<Topology>& machine) {
  const int shared_by = domain.integer(1, 1 << 16, 1);
  if (!domain || !machine) return;
  int& most = machine->facts().nvlink_domain;
  if (shared_by > most || most == 1) {
    domain.error(most == 1 ? fmt::format("'{}' shares no NVSwitch with other machines", machine->name())
                           : fmt::format("at most {} of '{}' share one NVSwitch", most, machine->name()));
  }
  most = shared_by;
}

std::optional<Topology> read_cluster_of(const YamlReader& cluster, int workers, const std::string& name, int depth) {
  auto machine = read_machine(cluster.required("node"), cluster, depth);
  read_domain(cluster.optional("nvlink_domain"), machine);
  check_fabric_keys(cluster);
  const YamlReader overrides = cluster.optional("overrides");
  if (has_fabric_file(cluster)) {
    if (!machine) return std::nullopt;
    return with_overrides(overrides, *machine, [&](const Topology& changed) {
      return read_cluster_of_files(cluster, changed, name, depth);
    });
  }
  Fabric fabric = read_fabric(cluster.optional("fabric"));
  if (!machine) return std::nullopt;
  if (const YamlReader nics = cluster.optional("nics"); nics.is_list()) {
    for (const YamlReader& nic : nics.list()) fabric.nics.push_back(nic.text());
  } else if (nics.present()) {
    fabric.nics = some_nics(nics, *machine);
  }
  return with_overrides(overrides, *machine, [&](const Topology& changed) -> std::optional<Topology> {
    if (!cluster.diagnostics().empty()) return std::nullopt;
    try {
      return make_cluster(changed, workers, fabric, name);
    } catch (const Error& error) {
      cluster.error(error.what());
      return std::nullopt;
    }
  });
}

}  // namespace

std::optional<Topology> read_cluster(const YamlReader& cluster, const std::string& name, int depth) {
  const bool needs_workers = !has_fabric_file(cluster) && !cluster.has("hosts");
  const YamlReader workers = needs_workers ? cluster.required("workers") : cluster.optional("workers");
  auto topology = read_cluster_of(cluster, workers.integer(1, 1 << 20, 1), name, depth);
  if (topology) topology->facts().stated_keys = stated_keys_of(cluster, *topology);
  return topology;
}

std::optional<Topology> read_cluster_map(const YamlReader& map, int workers) {
  const std::string node = map.optional("node").text("");
  auto topology =
      read_cluster_of(map, workers, workers == 1 ? node : std::to_string(workers) + " x " + node, kDepthInFile);
  if (topology) read_common_keys(map, *topology);
  return topology;
}

}  // namespace tandem
