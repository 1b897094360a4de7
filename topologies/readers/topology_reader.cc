#include "topologies/readers/topology_reader.h"

#include "topologies/base/machine_memory.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/base/xml_checks.h"
#include "topologies/readers/astra_network.h"
#include "topologies/readers/fabric_description.h"
#include "topologies/readers/graph_files.h"
#include "topologies/readers/hwloc_topology.h"
#include "topologies/readers/nccl/nccl_xml.h"
#include "topologies/readers/nvidia_smi.h"
#include "topologies/readers/simgrid_platform.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

bool is_xml(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return first != std::string_view::npos && text[first] == '<' && !text.substr(first).starts_with("<<");
}

ImportedTopology import_xml(std::string_view text, const std::string& file, const ImportOptions& options) {
  const std::string root = root_element(text);
  if (root == "platform") return import_simgrid_platform(text, file, options);
  if (root == "topology") return import_hwloc(text, file, options);
  if (root == "graphml") return import_graphml(text, file, options);
  return import_nccl_xml(text, file, options);
}

ImportedTopology import_any(std::string_view text, const std::string& file, const ImportOptions& options) {
  check_memory_of_text(file, text.size());
  if (is_xml(text)) return import_xml(text, file, options);
  if (is_nvidia_smi(text)) return import_nvidia_smi(text, file, options);
  if (is_slurm_conf(text)) return import_fabric(parse_slurm_conf(text, file), file, options);
  if (is_slurm_yaml(text)) return import_fabric(parse_slurm_yaml(text, file), file, options);
  if (is_ibnetdiscover(text)) return import_fabric(parse_ibnetdiscover(text, file), file, options);
  if (is_dot(text)) return import_dot(text, file, options);
  return import_astra_network(text, file, options);
}

}  // namespace

Topology read_topology(const std::filesystem::path& path) {
  return import_topology(path).topology;
}

ImportedTopology import_topology(const std::filesystem::path& path, const ImportOptions& options) {
  const std::string text = read_input_file(path);
  if (!is_own_topology(text)) return import_text(text, path.string(), options);
  Topology topology = parse_topology_yaml(text, path.string());
  std::vector<std::string> notes = topology.notes();
  for (std::string& note : notes_of_unused(options)) notes.push_back(std::move(note));
  return {std::move(topology), std::move(notes)};
}

bool is_own_topology(std::string_view text) {
  return !is_xml(text) && !is_nvidia_smi(text) && !is_slurm_conf(text) && !is_slurm_yaml(text) &&
         !is_ibnetdiscover(text) && !is_dot(text) && !is_astra_network(text);
}

ImportedTopology import_text(std::string_view text, const std::string& file, const ImportOptions& options) {
  ImportedTopology imported = import_any(text, file, options);
  imported.topology.add_notes(imported.notes);
  return imported;
}

}  // namespace tandem
