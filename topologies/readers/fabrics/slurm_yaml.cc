// Slurm's topology.yaml: a list of topologies, of which the cluster's default is read.
#include <fmt/format.h>

#include <algorithm>

#include "topologies/readers/fabric_description.h"
#include "topologies/readers/fabrics/slurm_tree.h"

namespace tandem {
namespace {

void add_text(const YamlReader& value, const char* key, SlurmLine& line) {
  if (!value) return;
  const std::string text = value.text();
  line.values.emplace(key, std::pair(text, value.column()));
}

std::vector<SlurmLine> switches_of(const YamlReader& tree, std::vector<std::string>& notes) {
  std::vector<SlurmLine> lines;
  bool has_speed = false;
  for (const YamlReader& one : tree.required("switches").list()) {
    SlurmLine line{one.line(), {}};
    add_text(one.required("switch"), "switchname", line);
    add_text(one.optional("children"), "switches", line);
    add_text(one.optional("nodes"), "nodes", line);
    has_speed |= one.optional("link_speed").present();
    if (line.values.contains("switchname")) lines.push_back(std::move(line));
  }
  if (has_speed) notes.emplace_back("link_speed has no effect here, as in Slurm");
  return lines;
}

std::vector<SlurmLine> blocks_of(const YamlReader& block, std::vector<std::string>& notes) {
  std::vector<SlurmLine> lines;
  if (block.optional("block_sizes")) {
    notes.emplace_back("block_sizes has no effect here: each block is one NVLink domain");
  }
  for (const YamlReader& one : block.required("blocks").list()) {
    SlurmLine line{one.line(), {}};
    add_text(one.required("block"), "blockname", line);
    add_text(one.required("nodes"), "nodes", line);
    if (line.values.contains("blockname")) lines.push_back(std::move(line));
  }
  return lines;
}

// Returns the cluster's default topology, else the first; the others are used by partitions of the cluster.
YamlReader chosen_of(const std::vector<YamlReader>& all) {
  for (const YamlReader& one : all) {
    if (one.optional("cluster_default").boolean(false)) return one;
  }
  return all.front();
}

}  // namespace

bool is_slurm_yaml(std::string_view text) {
  bool is_first = true, has_topology = false;
  for (std::size_t begin = 0; begin < text.size() && !has_topology;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos || line[start] == '#' || line.starts_with("---")) continue;
    if (is_first && line[start] != '-') return false;
    is_first = false;
    const std::size_t word = line.find_first_not_of("- \t");
    has_topology = word != std::string_view::npos && line.substr(word).starts_with("topology:");
  }
  return has_topology;
}

FabricDescription parse_slurm_yaml(std::string_view text, const std::string& file) {
  const YamlDocument document = YamlDocument::parse(text, file);
  Diagnostics problems;
  const YamlReader root(document, problems);
  const std::vector<YamlReader> all = root.list();
  std::vector<SlurmLine> lines;
  for (const YamlReader& one : all) one.required("topology").text();
  if (all.empty()) root.error("expected at least one topology, found none");
  problems.throw_if_any();
  const YamlReader chosen = chosen_of(all);
  const YamlReader tree = chosen.optional("tree"), block = chosen.optional("block");
  std::vector<std::string> notes;
  if (tree) lines = switches_of(tree, notes);
  if (block && !tree) lines = blocks_of(block, notes);
  if (all.size() > 1) {
    notes.push_back("of the file's " + std::to_string(all.size()) + " topologies only '" +
                    chosen.required("topology").text() + "' is read, which is the cluster's default or the first");
  }
  if (tree && block) block.error("cannot be given together with 'tree'");
  if (!tree && !block) {
    chosen.error("expected `tree:` with switches or `block:` with blocks; other topologies of Slurm are not read");
  }
  problems.throw_if_any();
  chosen.finish();
  FabricDescription fabric = fabric_of(lines, file, problems);
  fabric.notes = std::move(notes);
  return fabric;
}

}  // namespace tandem
