#include "topologies/readers/topology_reader.h"

#include <algorithm>
#include <array>

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

template <FabricDescription (*parse)(std::string_view text, const std::string& file)>
ImportedTopology import_described(std::string_view text, const std::string& file, const ImportOptions& options) {
  return import_fabric(parse(text, file), file, options);
}

// A format of other programs. The first one that recognises a text reads it.
struct Format {
  bool (*is_it)(std::string_view text);
  ImportedTopology (*import)(std::string_view text, const std::string& file, const ImportOptions& options);
};

constexpr std::array kFormats{
    Format{is_xml, import_xml},
    Format{is_nvidia_smi, import_nvidia_smi},
    Format{is_slurm_conf, import_described<parse_slurm_conf>},
    Format{is_slurm_yaml, import_described<parse_slurm_yaml>},
    Format{is_ibnetdiscover, import_described<parse_ibnetdiscover>},
    Format{is_dot, import_dot},
    Format{is_astra_network, import_astra_network},
};

const Format* format_of(std::string_view text) {
  const auto found = std::ranges::find_if(kFormats, [text](const Format& format) { return format.is_it(text); });
  return found == kFormats.end() ? nullptr : &*found;
}

}  // namespace

Topology read_topology(const std::filesystem::path& path) {
  return import_topology(path).topology;
}

ImportedTopology import_topology(const std::filesystem::path& path, const ImportOptions& options) {
  const std::string text = read_input_file(path);
  if (!is_own_topology(text)) return import_text(text, path.string(), options);
  Topology topology = parse_topology_yaml(text, path.string());
  std::vector<std::string> notes = topology.facts().notes;
  for (std::string& note : notes_of_unused(options)) notes.push_back(std::move(note));
  return {std::move(topology), std::move(notes)};
}

bool is_own_topology(std::string_view text) {
  return format_of(text) == nullptr;
}

ImportedTopology import_text(std::string_view text, const std::string& file, const ImportOptions& options) {
  check_memory_of_text(file, text.size());
  const Format* format = format_of(text);
  if (format == nullptr) format = &kFormats.back();  // its reader says what is missing
  ImportedTopology imported = format->import(text, file, options);
  imported.topology.facts().add_notes(imported.notes);
  return imported;
}

}  // namespace tandem
