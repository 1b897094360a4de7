#include "scenarios/scenario.h"

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
  Diagnostic diagnostic{file, 0, 0, std::string(path), std::move(message)};
  const YamlNode* node = document ? &document->root() : nullptr;
  while (node != nullptr) {
    diagnostic.line = node->line;
    diagnostic.column = node->column;
    if (path.empty()) break;
    const PathKey first = first_key_of(path, node);
    const YamlNode::Entry* entry = entry_of(*node, first.key);
    path = first.below;
    node = entry ? entry->value : nullptr;
  }
  return diagnostic;
}

}  // namespace tandem
