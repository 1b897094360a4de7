#include "topologies/readers/topology_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "topologies/readers/models_yaml.h"
#include "topologies/readers/topology_forms.h"

namespace tandem {
namespace {

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

// Reads the explicit form. Nodes and links with problems are reported and left out.
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
    topology_.facts().measured_with = std::move(facts);
    topology_.facts().nvlink_domain = map_.optional("nvlink_domain").integer(1, 1 << 16, 1);
    if (const YamlReader overrides = map_.optional("overrides")) Overrides(overrides).apply(topology_);
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
    sample.relative_spread = map.optional("spread").number_within(kSpreads);
    sample.nodes = map.optional("nodes").integer(1, 1 << 24, 1);
    if (sample.nodes > sample.devices) map.error("more nodes than devices");
    sample.algorithm = map.optional("algorithm").text();
    topology_.facts().collectives.push_back(std::move(sample));
  }

  const YamlReader& map_;
  Topology topology_;
  FigureOrigin origin_;
  Models<DeviceModel> devices_;
  Models<LinkModel> links_;
  std::set<std::string> names_;  // of every node, also those left out
};

void check_schema_version(const YamlReader& version) {
  const std::int64_t value = version.whole_number(1, std::numeric_limits<std::int64_t>::max(), 1);
  if (value > 1) version.error("schema version " + std::to_string(value) + " is newer than this tandem reads (1)");
}

void refuse_beside(const std::string& key, std::initializer_list<const char*> others, const YamlReader& map) {
  for (const char* other : others) {
    if (map.has(other)) map.optional(other).error("cannot be given together with '" + key + "'");
  }
}

Topology read_document(const YamlDocument& document) {
  Diagnostics diagnostics;
  const YamlReader root(document, diagnostics);
  root.required("schema_version");
  auto topology = read_topology_form(root, std::filesystem::path(document.file()).stem().string(), kDepthInFile);
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
  return read_topology_form(map, default_name, kDepthInScenario);
}

void read_common_keys(const YamlReader& map, Topology& topology) {
  const YamlReader p2p = map.optional("p2p"), exchanges = map.optional("exchanges");
  const YamlReader spread = map.optional("share_spread");
  if (p2p) {
    topology.facts().p2p = p2p.boolean(true);
    topology.facts().p2p_is_stated = true;
  }
  if (exchanges) topology.facts().exchanges_in_turn = exchanges.one_of<bool>({{"at_once", false}, {"in_turn", true}});
  if (spread) topology.facts().share_spread = spread.number({.least = 0, .most = 1});
  if (const YamlReader power = map.optional("power")) topology.facts().power_w = power.quantity(Dimension::watts);
  if (const YamlReader price = map.optional("price")) {
    const std::string text = price.text();
    topology.facts().price = parse_price(text);
    if (!topology.facts().price && !text.empty()) {
      price.error(
          fmt::format("expected the price of one machine such as 2.4 $/h or 98 EUR/h, from 0 to {:.0f}, found '{}'",
                      kMostPerHour, text));
    }
  }
}

std::optional<Topology> read_topology_form(const YamlReader& map, const std::string& default_name, int depth) {
  check_schema_version(map.optional("schema_version"));
  const std::string name = map.optional("name").text(default_name);
  std::optional<Topology> topology;
  if (const YamlReader cluster = map.optional("cluster")) {
    refuse_beside("cluster", {"based_on", "device_models", "link_models", "nodes", "links"}, map);
    topology = read_cluster(cluster, name, depth);
  } else if (map.has("based_on")) {
    refuse_beside("based_on", {"device_models", "link_models", "nodes", "links"}, map);
    topology = read_variant(map, name, depth);
  } else {
    topology = ExplicitForm(map, name).read();
  }
  Topology none(name);
  read_common_keys(map, topology ? *topology : none);
  if (!map.diagnostics().empty()) topology.reset();
  return topology;
}

}  // namespace tandem
