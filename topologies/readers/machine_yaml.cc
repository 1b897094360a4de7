#include <algorithm>
#include <filesystem>
#include <set>

#include "topologies/readers/catalog.h"
#include "topologies/readers/models_yaml.h"
#include "topologies/readers/topology_forms.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

constexpr int kDeepest = kDepthInFile + 8;  // files that are based on each other

// Reads a file that describes one machine.
std::optional<Topology> read_machine_file(const YamlReader& machine, const std::filesystem::path& path,
                                          const ImportOptions& options, int depth) {
  if (depth >= kDeepest) {
    machine.error("machines that are based on each other in a circle, or more than 8 of them");
    return std::nullopt;
  }
  try {
    const std::string text = read_input_file(path);
    if (!is_own_topology(text)) return import_text(text, path.string(), options).topology;
    if (!options.gpu.empty() || !options.complete_with.empty()) {
      machine.error("lacks nothing: `gpu` and `complete_with` are for descriptions that other programs write");
    }
    const YamlDocument document = YamlDocument::parse(text, path.string());
    const YamlReader root(document, machine.diagnostics());
    if (root.has("cluster")) {
      machine.error("'" + path.string() + "' is a cluster, expected one machine");
      return std::nullopt;
    }
    auto topology = read_topology_form(root, path.stem().string(), depth + 1);
    root.finish();
    return topology;
  } catch (const InputError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) machine.diagnostics().add(diagnostic);
    return std::nullopt;
  }
}

// Returns a name of the catalog, "none", or the path of a file relative to the one that names it.
std::string complete_with_option(const YamlReader& value, int depth) {
  std::string name = value.text();
  if (name.empty() || name == kNoMachine) return name;
  if (name.find_first_of("/.") != std::string::npos) return named_file(value, depth).value_or("").string();
  const auto known = catalog_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  value.unknown_word("catalog node", name, known);
  return "";
}

struct Changes {
  Models<DeviceModel> devices;
  Models<LinkModel> links;
  std::set<NodeIndex> removed;
};

Changes models_of(const Topology& machine) {
  Changes models;
  for (NodeIndex index = 0; index < machine.node_count(); ++index) {
    if (const auto& device = machine.node(index).device) models.devices.emplace(device->id, device);
    if (const auto& port = machine.node(index).port) models.links.emplace(port->id, port);
  }
  for (LinkIndex index = 0; index < machine.link_count(); ++index) {
    models.links.emplace(machine.link(index).model->id, machine.link(index).model);
  }
  return models;
}

template <typename Model>
std::shared_ptr<const Model> changed(const std::shared_ptr<const Model>& model, const Models<Model>& changes) {
  const auto found = model ? changes.find(model->id) : changes.end();
  return found == changes.end() ? model : found->second;
}

Topology changed_copy(const Topology& machine, const Changes& changes, const std::string& name) {
  Topology copy(name);
  std::map<NodeIndex, NodeIndex> places;
  for (NodeIndex index = 0; index < machine.node_count(); ++index) {
    if (changes.removed.contains(index)) continue;
    Node part = machine.node(index);
    part.device = changed(part.device, changes.devices);
    part.port = changed(part.port, changes.links);
    places[index] = copy.add_node(std::move(part));
  }
  for (LinkIndex index = 0; index < machine.link_count(); ++index) {
    const Link& link = machine.link(index);
    if (changes.removed.contains(link.from) || changes.removed.contains(link.to)) continue;
    copy.add_link(places[link.from], places[link.to], changed(link.model, changes.links), link.direction);
  }
  for (const CollectiveSample& sample : machine.collectives()) copy.add_collective(sample);
  copy.set_measured_with(machine.measured_with());
  copy.set_p2p(machine.p2p());
  copy.set_exchanges_in_turn(machine.exchanges_in_turn());
  copy.set_share_spread(machine.share_spread());
  copy.set_nvlink_domain(machine.nvlink_domain());
  copy.set_price(machine.price());
  copy.add_notes(machine.notes());
  return copy;
}

std::set<NodeIndex> read_removed(const Topology& machine, const YamlReader& without) {
  std::vector<std::string> names;
  for (NodeIndex index = 0; index < machine.node_count(); ++index) names.push_back(machine.node(index).name);
  std::set<NodeIndex> removed;
  for (const YamlReader& node : without.list()) {
    const std::string name = node.text();
    const auto index = machine.find(name);
    if (index) removed.insert(*index);
    if (!index && !name.empty()) node.unknown_word("node", name, names);
  }
  if (removed.size() == machine.node_count()) without.error("leaves no node");
  return removed;
}

bool leads_out(const std::filesystem::path& reference) {
  const auto normal = reference.lexically_normal();
  return reference.is_absolute() || (!normal.empty() && *normal.begin() == "..");
}

}  // namespace

std::optional<std::filesystem::path> named_file(const YamlReader& value, int depth) {
  const std::string name = value.text();
  if (name.empty()) return std::nullopt;
  if (depth >= kDepthInFile && leads_out(name)) {
    value.error("'" + name + "' is out of this file's folder: a topology names files in its folder or below it");
    return std::nullopt;
  }
  const auto path = (std::filesystem::path(value.file()).parent_path() / name).lexically_normal();
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  value.error("no such file beside this one: '" + name + "'");
  return std::nullopt;
}

std::optional<Topology> read_machine(const YamlReader& machine, const YamlReader& map, int depth) {
  ImportOptions options;
  const YamlReader complete_with = map.optional("complete_with");
  options.complete_with = complete_with_option(complete_with, depth);
  options.gpu = map.optional("gpu").text("");
  if (complete_with && options.complete_with.empty()) return std::nullopt;
  const std::string name = machine.text();
  if (name.empty()) return std::nullopt;
  const auto known = catalog_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    return read_machine_file(machine, catalog_file(name), options, depth);
  }
  if (name.find_first_of("/.") == std::string::npos) {
    machine.unknown_word("catalog node", name, known);
    return std::nullopt;
  }
  const auto path = named_file(machine, depth);
  return path ? read_machine_file(machine, *path, options, depth) : std::nullopt;
}

Topology with_overrides(const Topology& machine, const YamlReader& overrides, std::vector<NodeOverride>& others) {
  const Changes known = models_of(machine);
  Changes changes;
  std::vector<NodeOverride> of_nodes;
  for (const auto& [id, map] : overrides.entries()) {
    if (known.devices.contains(id)) {
      changes.devices[id] = std::make_shared<DeviceModel>(overridden(*known.devices.at(id), map));
    } else if (known.links.contains(id)) {
      changes.links[id] = std::make_shared<LinkModel>(overridden(*known.links.at(id), map));
    } else {
      for (NodeOverride& change : node_overrides(id, map)) of_nodes.push_back(std::move(change));
    }
  }
  Topology changed = changed_copy(machine, changes, machine.name());
  for (NodeOverride& change : of_nodes) {
    if (!is_for_every_machine(change.key) || !apply(change, changed)) others.push_back(std::move(change));
  }
  return changed;
}

void apply_overrides(const std::vector<NodeOverride>& changes, const Topology& machine, Topology& topology) {
  const Changes known = models_of(machine);
  std::vector<std::string> ids = keys_of(known.devices);
  for (const std::string& id : keys_of(known.links)) ids.push_back(id);
  for (const NodeOverride& change : changes) {
    if (!apply(change, topology)) report_unknown(change, topology, ids);
  }
}

std::optional<Topology> read_variant(const YamlReader& map, const std::string& name, int depth) {
  auto machine = read_machine(map.required("based_on"), map, depth);
  const YamlReader overrides = map.optional("overrides");
  const YamlReader without = map.optional("without");
  const YamlReader p2p = map.optional("p2p");
  const bool stated = p2p.boolean(true);
  if (!machine) return std::nullopt;
  if (overrides) {
    std::vector<NodeOverride> others;
    machine = with_overrides(*machine, overrides, others);
    apply_overrides(others, *machine, *machine);
  }
  Changes changes;
  if (without) changes.removed = read_removed(*machine, without);
  if (!map.diagnostics().empty()) return std::nullopt;
  Topology variant = changed_copy(*machine, changes, name);
  if (p2p) variant.set_p2p(stated);
  return variant;
}

}  // namespace tandem
