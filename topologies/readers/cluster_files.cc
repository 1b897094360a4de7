// `cluster: {node: ./node.xml, fabric: ./ibnetdiscover.txt, hosts: ./topology.conf}`.
#include <fmt/format.h>

#include <filesystem>

#include "topologies/readers/fabric_description.h"
#include "topologies/readers/topology_forms.h"

namespace tandem {
namespace {

bool names_file(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".txt") || text.ends_with(".conf") ||
         text.ends_with(".yaml");
}

// Returns the hosts in order, from a list, a list in Slurm's form, or a topology.conf. Empty: all hosts.
std::vector<std::string> read_hosts(const YamlReader& hosts, int depth) {
  std::vector<std::string> names;
  if (hosts.is_list()) {
    for (const YamlReader& host : hosts.list()) names.push_back(host.text());
    return names;
  }
  const std::string text = hosts.text();
  if (text.empty()) return names;
  if (names_file(text)) {
    const auto file = named_file(hosts, depth);
    return file ? read_fabric_description(file->string()).hosts : names;
  }
  auto listed = hosts_of_list(text);
  if (!listed) hosts.error("expected a list of hosts, such as node[01-16], or a topology.conf");
  return listed.value_or(names);
}

}  // namespace

bool has_fabric_file(const YamlReader& cluster) {
  const YamlReader fabric = cluster.optional("fabric");
  return fabric.is_scalar() && names_file(fabric.node()->text);
}

std::optional<Topology> read_cluster_of_files(const YamlReader& cluster, const Topology& machine,
                                              const std::string& name, int depth) {
  const YamlReader fabric = cluster.optional("fabric"), workers = cluster.optional("workers");
  try {
    const auto file = named_file(fabric, depth);
    if (!file) return std::nullopt;
    const FabricDescription description = read_fabric_description(file->string());
    std::vector<std::string> hosts = read_hosts(cluster.optional("hosts"), depth);
    std::vector<std::string> notes;
    if (workers.present()) {
      const auto most = static_cast<int>(hosts.empty() ? description.hosts.size() : hosts.size());
      const int count = workers.integer(1, 1 << 20, 1);
      if (count != most)
        workers.error(fmt::format("the fabric has {} hosts; leave `workers` out, or name some with `hosts`", most));
    }
    if (!cluster.diagnostics().empty()) return std::nullopt;
    Topology topology = compose_cluster(&machine, description, hosts, name, file->string(), notes);
    topology.facts().add_notes(machine.facts().notes);
    topology.facts().add_notes(notes);
    return topology;
  } catch (const InputError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) cluster.diagnostics().add(diagnostic);
    return std::nullopt;
  }
}

}  // namespace tandem
