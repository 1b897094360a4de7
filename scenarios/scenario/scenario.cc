#include "scenarios/scenario/scenario.h"

#include <algorithm>

#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

const YamlNode::Entry* entry_of(const YamlNode& node, std::string_view key) {
  for (const YamlNode::Entry& entry : node.entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

}  // namespace

Diagnostic Scenario::problem_at(std::string_view path, std::string message) const {
  const std::string whole_path(path);
  int line = 0, column = 0;
  const YamlNode* node = document ? &document->root() : nullptr;
  while (node != nullptr) {
    line = node->line;
    column = node->column;
    if (path.empty()) break;
    const PathKey first = first_key_of(path, node);
    const YamlNode::Entry* entry = entry_of(*node, first.key);
    path = first.below;
    node = entry ? entry->value : nullptr;
  }
  if (!document) return {file, line, column, whole_path, std::move(message)};
  return document->problem_at(line, column, whole_path, std::move(message));
}

}  // namespace tandem
