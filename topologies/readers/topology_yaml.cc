#include "topologies/readers/topology_yaml.h"

#include <algorithm>
#include <set>

#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/models_yaml.h"
#include "topologies/readers/nccl_xml.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

template <typename Model>
using Models = std::map<std::string, std::shared_ptr<const Model>>;

template <typename Value>
std::vector<std::string> keys_of(const std::map<std::string, Value>& values) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values) keys.push_back(key);
  return keys;
}

// Looks up the model a reader names, or reports it and returns nothing.
template <typename Model>
std::shared_ptr<const Model> model_named(const YamlReader& name, std::string_view what, const Models<Model>& models) {
  const std::string id = name.text();
  if (id.empty()) return nullptr;
  const auto found = models.find(id);
  if (found != models.end()) return found->second;
  name.unknown_word(what, id, keys_of(models));
  return nullptr;
}

const YamlReader::Words<NodeKind>& node_kinds() {
  static const YamlReader::Words<NodeKind> kWords{
      {"cpu", NodeKind::cpu},           {"gpu", NodeKind::gpu}, {"pcie_switch", NodeKind::pcie_switch},
      {"nvswitch", NodeKind::nvswitch}, {"nic", NodeKind::nic}, {"network_switch", NodeKind::network_switch}};
  return kWords;
}

// The explicit form. Nodes and links with problems are left out; the problems are reported.
class ExplicitForm {
 public:
  ExplicitForm(const YamlReader& map, const std::string& name)
      : map_(map), topology_(name), origin_(read_origin(map, {})) {}

  Topology read() {
    for (const auto& [id, model] : map_.optional("device_models").entries()) {
      devices_[id] = std::make_shared<DeviceModel>(read_device_model(model, id, origin_));
    }
    for (const auto& [id, model] : map_.optional("link_models").entries()) {
      links_[id] = std::make_shared<LinkModel>(read_link_model(model, id, origin_));
    }
    const YamlReader nodes = map_.required("nodes");
    for (const YamlReader& node : nodes.list()) read_node(node);
    if (nodes.is_list() && names_.empty()) nodes.error("needs at least one node");
    for (const YamlReader& link : map_.optional("links").list()) read_link(link);
    for (const YamlReader& sample : map_.optional("collectives").list()) read_collective(sample);
    std::map<std::string, std::string> facts;
    for (const auto& [name, fact] : map_.optional("measured_with").entries()) facts[name] = fact.text();
    topology_.set_measured_with(std::move(facts));
    topology_.set_p2p(map_.optional("p2p").boolean(true));
    return std::move(topology_);
  }

 private:
  void read_node(const YamlReader& map) {
    Node node;
    const YamlReader name = map.required("name");
    node.name = name.text();
    const YamlReader kind = map.required("kind");
    node.kind = kind.one_of(node_kinds(), NodeKind::network_switch);
    const int worker = node.kind == NodeKind::network_switch ? kNoWorker : 0;
    node.worker = map.optional("worker").integer(kNoWorker, 1 << 24, worker);
    const bool is_device = node.kind == NodeKind::cpu || node.kind == NodeKind::gpu;
    if (is_device) node.device = model_named(map.required("device"), "device model", devices_);
    const bool kind_is_known = node.kind != NodeKind::network_switch || kind.text() == name_of(node.kind);
    if (const YamlReader device = map.optional("device"); device && !is_device && kind_is_known) {
      device.error("only cpu and gpu nodes have a device model");
    }
    const YamlReader port = map.optional("port");
    if (node.kind == NodeKind::nic) node.port = model_named(port, "link model", links_);
    if (port && node.kind != NodeKind::nic && kind_is_known) port.error("only nic nodes have a port");
    if (node.name.empty()) return;
    if (!names_.insert(node.name).second) return name.error("two nodes named '" + node.name + "'");
    if (node.worker > topology_.worker_count()) {
      return map.optional("worker").error("a node of worker " + std::to_string(topology_.worker_count()) +
                                          " must come first: workers are numbered from 0 without gaps");
    }
    topology_.add_node(std::move(node));
  }

  std::optional<NodeIndex> node_named(const YamlReader& reader) {
    const std::string name = reader.text();
    if (name.empty()) return std::nullopt;
    const auto found = topology_.find(name);
    if (!found && !names_.contains(name)) reader.unknown_word("node", name, {names_.begin(), names_.end()});
    return found;
  }

  // `to` may be a list: a link to each.
  void read_link(const YamlReader& map) {
    const auto from = node_named(map.required("from"));
    const auto model = model_named(map.required("model"), "link model", links_);
    const Direction direction = map.optional("direction")
                                    .one_of<Direction>({{"duplex", Direction::duplex},
                                                        {"half_duplex", Direction::half_duplex},
                                                        {"one_way", Direction::one_way}});
    const YamlReader to = map.required("to");
    for (const YamlReader& end : to.is_list() ? to.list() : std::vector<YamlReader>{to}) {
      const auto target = node_named(end);
      if (!from || !target) continue;
      if (*from == *target) {
        end.error("a link from '" + topology_.node(*from).name + "' to itself");
      } else if (model && map.diagnostics().empty()) {
        topology_.add_link(*from, *target, model, direction);
      }
    }
  }

  void read_collective(const YamlReader& map) {
    static const std::vector<std::string> kOperations{"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                      "reduce",     "send",       "all_to_all"};
    CollectiveSample sample;
    const YamlReader operation = map.required("operation");
    sample.operation = operation.text();
    if (!sample.operation.empty() &&
        std::find(kOperations.begin(), kOperations.end(), sample.operation) == kOperations.end()) {
      operation.unknown_word("operation", sample.operation, kOperations);
    }
    sample.devices = map.required("devices").integer(1, 1 << 24, 1);
    sample.bytes = map.required("bytes").quantity(Dimension::bytes, {.zero_allowed = true});
    sample.time_s = map.required("time").quantity(Dimension::seconds);
    sample.relative_spread = map.optional("spread").number({.least = 0});
    sample.nodes = map.optional("nodes").integer(1, 1 << 24, 1);
    if (sample.nodes > sample.devices) map.error("more nodes than devices");
    sample.algorithm = map.optional("algorithm").text();
    topology_.add_collective(std::move(sample));
  }

  const YamlReader& map_;
  Topology topology_;
  FigureOrigin origin_;
  Models<DeviceModel> devices_;
  Models<LinkModel> links_;
  std::set<std::string> names_;  // of every node, also those left out
};

// The compact form, `cluster:`.
class ClusterForm {
 public:
  ClusterForm(const YamlReader& map, std::string name) : map_(map), name_(std::move(name)) {}

  std::optional<Topology> read() {
    auto node = read_machine();
    const int workers = map_.required("workers").integer(1, 1 << 16, 1);
    const Fabric fabric = read_fabric();
    if (!node) return std::nullopt;
    if (const YamlReader overrides = map_.optional("overrides")) node = with_overrides(*node, overrides);
    if (!map_.diagnostics().empty()) return std::nullopt;
    try {
      return make_cluster(*node, workers, fabric, name_);
    } catch (const Error& error) {
      map_.error(error.what());
      return std::nullopt;
    }
  }

 private:
  std::optional<Topology> read_machine() {
    const YamlReader node = map_.required("node");
    const std::string name = node.text();
    if (name.empty()) return std::nullopt;
    const auto known = catalog_names();
    if (std::find(known.begin(), known.end(), name) != known.end()) return load_catalog_node(name);
    if (name.find_first_of("/.") == std::string::npos) {
      node.unknown_word("catalog node", name, known);
      return std::nullopt;
    }
    return read_machine_file(node, std::filesystem::path(map_.file()).parent_path() / name);
  }

  // A file that describes one machine: explicit, so that files cannot include each other in a circle.
  std::optional<Topology> read_machine_file(const YamlReader& node, const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      node.error("no such file beside this one: '" + node.text() + "'");
      return std::nullopt;
    }
    try {
      const std::string text = read_input_file(path);
      if (is_nccl_xml(text)) return parse_nccl_xml(text, path.string());
      const YamlDocument document = YamlDocument::parse(text, path.string());
      const YamlReader root(document, node.diagnostics());
      if (root.has("cluster")) {
        node.error("'" + path.string() + "' is a cluster, expected one machine");
        return std::nullopt;
      }
      return read_topology_map(root, path.stem().string());
    } catch (const InputError& error) {
      for (const Diagnostic& diagnostic : error.diagnostics()) node.diagnostics().add(diagnostic);
      return std::nullopt;
    }
  }

  Fabric read_fabric() {
    static const YamlReader::Words<FabricKind> kKinds{
        {"switch", FabricKind::single_switch}, {"leaf_spine", FabricKind::leaf_spine}, {"rail", FabricKind::rail}};
    Fabric fabric;
    const YamlReader map = map_.optional("fabric");
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
    fabric.workers_per_leaf = map.optional("workers_per_leaf").integer(1, 1 << 20, fabric.workers_per_leaf);
    fabric.spines = map.optional("spines").integer(1, 4096, fabric.spines);
    fabric.oversubscription = map.optional("oversubscription").number({.above = 0, .otherwise = 1});
    return fabric;
  }

  static void read_optional(const YamlReader& value, Dimension dimension, const FigureOrigin& origin,
                            std::optional<Figure>& figure) {
    if (value.present()) read_figure(value, dimension, origin, dimension == Dimension::seconds, figure.emplace());
  }

  // The same machine with figures of some models replaced.
  static Topology with_overrides(const Topology& node, const YamlReader& overrides) {
    Models<DeviceModel> devices;
    Models<LinkModel> links;
    collect_models(node, devices, links);
    Models<DeviceModel> changed_devices;
    Models<LinkModel> changed_links;
    std::vector<std::string> known = keys_of(devices);
    for (const std::string& id : keys_of(links)) known.push_back(id);
    for (const auto& [id, map] : overrides.entries()) {
      const FigureOrigin origin{Provenance::assumed, "overridden in " + map.file(), ""};
      if (devices.contains(id)) {
        auto model = std::make_shared<DeviceModel>(*devices[id]);
        read_device_figures(map, read_origin(map, origin), *model);
        changed_devices[id] = model;
      } else if (links.contains(id)) {
        auto model = std::make_shared<LinkModel>(*links[id]);
        read_link_figures(map, read_origin(map, origin), *model);
        changed_links[id] = model;
      } else {
        map.unknown_word("device or link model", id, known);
      }
    }
    return with_models(node, changed_devices, changed_links);
  }

  static void collect_models(const Topology& node, Models<DeviceModel>& devices, Models<LinkModel>& links) {
    for (NodeIndex index = 0; index < node.node_count(); ++index) {
      if (const auto& device = node.node(index).device) devices.emplace(device->id, device);
      if (const auto& port = node.node(index).port) links.emplace(port->id, port);
    }
    for (LinkIndex index = 0; index < node.link_count(); ++index) {
      links.emplace(node.link(index).model->id, node.link(index).model);
    }
  }

  template <typename Model>
  static std::shared_ptr<const Model> changed(const std::shared_ptr<const Model>& model, const Models<Model>& changes) {
    const auto found = model ? changes.find(model->id) : changes.end();
    return found == changes.end() ? model : found->second;
  }

  static Topology with_models(const Topology& node, const Models<DeviceModel>& devices,
                              const Models<LinkModel>& links) {
    Topology copy(node.name());
    for (NodeIndex index = 0; index < node.node_count(); ++index) {
      Node part = node.node(index);
      part.device = changed(part.device, devices);
      part.port = changed(part.port, links);
      copy.add_node(std::move(part));
    }
    for (LinkIndex index = 0; index < node.link_count(); ++index) {
      const Link& link = node.link(index);
      copy.add_link(link.from, link.to, changed(link.model, links), link.direction);
    }
    for (const CollectiveSample& sample : node.collectives()) copy.add_collective(sample);
    copy.set_measured_with(node.measured_with());
    copy.set_p2p(node.p2p());
    return copy;
  }

  YamlReader map_;
  std::string name_;
};

void check_schema_version(const YamlReader& version) {
  const std::int64_t value = version.whole_number(1, std::numeric_limits<std::int64_t>::max(), 1);
  if (value > 1) version.error("schema version " + std::to_string(value) + " is newer than this tandem reads (1)");
}

Topology read_document(const YamlDocument& document) {
  Diagnostics diagnostics;
  const YamlReader root(document, diagnostics);
  root.required("schema_version");
  auto topology = read_topology_map(root, std::filesystem::path(document.file()).stem().string());
  root.finish();
  diagnostics.throw_if_any();
  TANDEM_CHECK(topology.has_value(), "a topology without problems was not built");
  return std::move(*topology);
}

}  // namespace

Topology read_topology_yaml(const std::filesystem::path& path) {
  return read_document(YamlDocument::load(path));
}

Topology parse_topology_yaml(std::string_view text, const std::string& file) {
  return read_document(YamlDocument::parse(text, file));
}

std::optional<Topology> read_topology_map(const YamlReader& map, const std::string& default_name) {
  check_schema_version(map.optional("schema_version"));
  const std::string name = map.optional("name").text(default_name);
  std::optional<Topology> topology;
  if (const YamlReader cluster = map.optional("cluster")) {
    for (const char* key : {"device_models", "link_models", "nodes", "links"}) {
      if (map.has(key)) map.optional(key).error("cannot be given together with 'cluster'");
    }
    topology = ClusterForm(cluster, name).read();
    const YamlReader p2p = map.optional("p2p");
    const bool stated = p2p.boolean(true);
    if (topology && p2p) topology->set_p2p(stated);
  } else {
    topology = ExplicitForm(map, name).read();
  }
  if (!map.diagnostics().empty()) topology.reset();
  return topology;
}

}  // namespace tandem
