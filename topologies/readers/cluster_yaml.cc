#include <algorithm>

#include "topologies/generators/cluster.h"
#include "topologies/readers/models_yaml.h"
#include "topologies/readers/topology_forms.h"

namespace tandem {
namespace {

void read_optional(const YamlReader& value, Dimension dimension, const FigureOrigin& origin,
                   std::optional<Figure>& figure) {
  if (value.present()) read_figure(value, dimension, origin, dimension == Dimension::seconds, figure.emplace());
}

Fabric read_fabric(const YamlReader& map) {
  static const YamlReader::Words<FabricKind> kKinds{
      {"switch", FabricKind::single_switch}, {"leaf_spine", FabricKind::leaf_spine}, {"rail", FabricKind::rail}};
  Fabric fabric;
  if (map.is_scalar()) fabric.kind = map.one_of(kKinds, FabricKind::single_switch);
  if (!map.present() || map.is_scalar()) return fabric;
  fabric.kind = map.required("kind").one_of(kKinds, FabricKind::single_switch);
  const FigureOrigin origin = read_origin(map, {Provenance::assumed, "stated in " + map.file(), ""});
  read_optional(map.optional("latency"), Dimension::seconds, origin, fabric.latency_s);
  read_optional(map.optional("hop_latency"), Dimension::seconds, origin, fabric.hop_latency_s);
  if (const YamlReader transport = map.optional("transport")) fabric.transport = read_transport(transport);
  read_optional(map.optional("nic_bandwidth"), Dimension::bytes_per_second, origin, fabric.nic_bandwidth_bytes_per_s);
  for (const char* key : {"workers_per_leaf", "spines", "oversubscription"}) {
    if (fabric.kind == FabricKind::single_switch && map.has(key)) {
      map.optional(key).error("has no meaning for a single switch");
    }
  }
  for (const YamlReader& nic : map.optional("nics").list()) fabric.nics.push_back(nic.text());
  if (map.has("nics") && map.optional("nics").is_list() && fabric.nics.empty()) {
    map.optional("nics").error("needs at least one NIC");
  }
  fabric.workers_per_leaf = map.optional("workers_per_leaf").integer(1, 1 << 20, fabric.workers_per_leaf);
  fabric.spines = map.optional("spines").integer(1, 4096, fabric.spines);
  fabric.oversubscription = map.optional("oversubscription").number({.above = 0, .otherwise = 1});
  return fabric;
}

}  // namespace

std::optional<Topology> read_cluster(const YamlReader& cluster, const std::string& name, int depth) {
  auto machine = read_machine(cluster.required("node"), depth);
  const int workers = cluster.required("workers").integer(1, 1 << 16, 1);
  const Fabric fabric = read_fabric(cluster.optional("fabric"));
  if (!machine) return std::nullopt;
  if (const YamlReader overrides = cluster.optional("overrides")) machine = with_overrides(*machine, overrides);
  if (!cluster.diagnostics().empty()) return std::nullopt;
  try {
    return make_cluster(*machine, workers, fabric, name);
  } catch (const Error& error) {
    cluster.error(error.what());
    return std::nullopt;
  }
}

}  // namespace tandem
