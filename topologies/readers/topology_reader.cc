#include "topologies/readers/topology_reader.h"

#include "topologies/base/strict_yaml.h"
#include "topologies/readers/nccl_xml.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {

bool is_nccl_xml(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return first != std::string_view::npos && text[first] == '<' && !text.substr(first).starts_with("<<");
}

Topology read_topology(const std::filesystem::path& path) {
  return import_topology(path).topology;
}

ImportedTopology import_topology(const std::filesystem::path& path, const ImportOptions& options) {
  const std::string text = read_input_file(path);
  if (is_nccl_xml(text)) return import_nccl_xml(text, path.string(), options);
  return {parse_topology_yaml(text, path.string()), {}};
}

}  // namespace tandem
