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

// Reads a file that describes one machine or, if `may_be_cluster`, several.
std::optional<Topology> read_machine_file(const YamlReader& machine, const std::filesystem::path& path,
                                          const ImportOptions& options, int depth, bool may_be_cluster) {
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
    if (root.has("cluster") && !may_be_cluster) {
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

Topology without_nodes(const Topology& machine, const std::set<NodeIndex>& removed, const std::string& name) {
  Topology copy(name);
  std::map<NodeIndex, NodeIndex> places;
  for (NodeIndex index = 0; index < machine.node_count(); ++index) {
    if (!removed.contains(index)) places[index] = copy.add_node(machine.node(index));
  }
  for (LinkIndex index = 0; index < machine.link_count(); ++index) {
    const Link link = machine.link(index);
    if (removed.contains(link.from) || removed.contains(link.to)) continue;
    copy.add_link(places[link.from], places[link.to], link.model, link.direction);
  }
  copy.facts() = machine.facts();
  copy.facts().stated_keys.clear();  // they are in the file of the other machine
  return copy;
}

std::set<NodeIndex> read_removed(const Topology& machine, const YamlReader& without) {
  std::vector<std::string> names;
  for (NodeIndex index = 0; index < machine.node_count(); ++index) names.push_back(machine.node(index).name);
  std::set<NodeIndex> removed;
  for (const YamlReader& node : without.list()) {
    const std::string name = node.text();
    if (name.empty()) continue;
    const std::set<NodeIndex> named = nodes_named(name, machine);
    if (named.empty()) node.unknown_word("node", name, names);
    removed.insert(named.begin(), named.end());
  }
  std::vector<int> left(static_cast<std::size_t>(machine.worker_count()));
  for (NodeIndex index = 0; index < machine.node_count(); ++index) {
    const int worker = machine.node(index).worker;
    if (worker != kNoWorker && !removed.contains(index)) ++left[static_cast<std::size_t>(worker)];
  }
  if (const auto empty = std::find(left.begin(), left.end(), 0); removed.size() == machine.node_count()) {
    without.error("leaves no node");
  } else if (empty != left.end()) {
    without.error("leaves no node of machine " + std::to_string(empty - left.begin()));
  }
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

std::optional<Topology> read_machine(const YamlReader& machine, const YamlReader& map, int depth, bool may_be_cluster) {
  ImportOptions options;
  const YamlReader complete_with = map.optional("complete_with");
  options.complete_with = complete_with_option(complete_with, depth);
  options.gpu = map.optional("gpu").text("");
  if (complete_with && options.complete_with.empty()) return std::nullopt;
  const std::string name = machine.text();
  if (name.empty()) return std::nullopt;
  const auto known = catalog_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    return read_machine_file(machine, catalog_file(name), options, depth, may_be_cluster);
  }
  if (name.find_first_of("/.") == std::string::npos) {
    machine.unknown_word("catalog node", name, known);
    return std::nullopt;
  }
  const auto path = named_file(machine, depth);
  return path ? read_machine_file(machine, *path, options, depth, may_be_cluster) : std::nullopt;
}

std::optional<Topology> read_variant(const YamlReader& map, const std::string& name, int depth) {
  auto machine = read_machine(map.required("based_on"), map, depth, true);
  const YamlReader overrides = map.optional("overrides");
  const YamlReader without = map.optional("without");
  const YamlReader domain = map.optional("nvlink_domain");
  const int shared_by = domain.integer(1, 1 << 16, 1);
  if (!machine) return std::nullopt;
  // A copy without the compact form of a cluster, whose machines an override may change one by one.
  Topology variant = without_nodes(*machine, {}, name);
  Overrides(overrides).apply(variant);
  std::set<NodeIndex> removed;
  if (without) removed = read_removed(variant, without);
  if (domain && variant.worker_count() > 1) domain.error("is of one machine; this is a cluster, whose GPUs are joined");
  if (!map.diagnostics().empty()) return std::nullopt;
  if (!removed.empty()) variant = without_nodes(variant, removed, name);
  if (domain) variant.facts().nvlink_domain = shared_by;
  return variant;
}

}  // namespace tandem
