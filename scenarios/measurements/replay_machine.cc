#include "scenarios/measurements/replay_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "topologies/readers/topology_yaml.h"

namespace tandem::validation {
namespace {

constexpr int kMostNodes = 1 << 16;

int gpus_of(const Topology& topology) {
  return static_cast<int>(topology.nodes_of(0, NodeKind::gpu).size());
}

std::string transport_of(const Topology& topology) {
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    const LinkModel& link = *topology.link(i).model;
    if (link.kind == LinkKind::network && !link.transport.empty()) return link.transport;
  }
  return "";
}

std::map<std::string, std::string> read_nccl(const YamlReader& map) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : map.entries()) variables[name] = value.text();
  return variables;
}

// Returns whether the machine has the devices and the network of the measurement.
bool fits(const YamlReader& entry, const Topology& topology, int devices, int nodes) {
  if (devices % nodes != 0) {
    entry.error(fmt::format("{} devices cannot be divided among {} nodes", devices, nodes));
    return false;
  }
  if (devices / nodes > gpus_of(topology)) {
    entry.error(fmt::format("{} devices on {} of '{}' with {} GPUs{}", devices,
                            nodes == 1 ? "one node" : fmt::format("{} nodes", nodes), entry.optional("node").text(),
                            gpus_of(topology), nodes == 1 ? "" : " each"));
    return false;
  }
  return true;
}

// The oldest modelled version is used for older ones, because 2.4 chose and sent much like 2.5.
std::string modelled_version(const std::string& version) {
  constexpr int kOldestMinor = 5;
  int minor = kOldestMinor;
  if (version.starts_with("2.")) std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor < kOldestMinor ? fmt::format("2.{}", kOldestMinor) : version;
}

}  // namespace

int ReplayMachine::devices_per_node() const {
  return gpus_of(*topology);
}

std::map<std::string, std::string> ReplayMachine::nccl_of_job(int devices_per_node, const std::string& version) const {
  std::map<std::string, std::string> variables = nccl;
  if (!version.empty()) variables.try_emplace("version", version);
  if (const auto stated = variables.find("version"); stated != variables.end()) {
    stated->second = modelled_version(stated->second);
  }
  const int driven = std::min(devices_per_process, devices_per_node);
  if (driven > 1) variables["devices_per_process"] = fmt::to_string(driven);
  return variables;
}

std::string ReplayMachine::family() const {
  return nodes == 1 ? node : fmt::format("{}, {} nodes", node, nodes);
}

std::optional<ReplayMachine> read_replay_machine(const YamlReader& entry, int devices, int nodes) {
  ReplayMachine machine;
  machine.node = entry.required("node").text();
  const int stated = entry.optional("nodes").integer(1, kMostNodes, 1);
  machine.nodes = nodes > 0 ? nodes : stated;
  machine.nics_stated = entry.optional("nics_stated").boolean(true);
  machine.p2p_stated = entry.optional("p2p_stated").boolean(true);
  machine.power_limited = entry.optional("power_limited").boolean(false);
  machine.devices_per_process = entry.optional("devices_per_process").integer(1, kMostNodes, 1);
  machine.nccl = read_nccl(entry.optional("nccl"));
  auto topology = read_cluster_map(entry, machine.nodes);
  entry.finish();
  if (!topology || !entry.diagnostics().empty()) return {};
  if (!fits(entry, *topology, devices, machine.nodes)) return {};
  if (machine.nodes > 1) machine.transport = transport_of(*topology);
  machine.topology = std::make_shared<const Topology>(std::move(*topology));
  return machine;
}

}  // namespace tandem::validation
