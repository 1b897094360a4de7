#include "scenarios/scenario/scenario_values.h"

#include <fmt/format.h>

#include <set>

#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr std::size_t kMostValues = 5000;
constexpr std::size_t kMostChanges = 10;
constexpr std::size_t kMostValueBytes = 80;

void add_values(const YamlNode& node, const std::string& path, ScenarioValues& values) {
  if (values.size() > kMostValues) return;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    add_values(*node.items[i], fmt::format("{}[{}]", path, i), values);
  }
  for (const YamlNode::Entry& entry : node.entries) {
    if (path.empty() && entry.key == "sweep") continue;
    const std::string key = entry.key.find('.') == std::string::npos ? entry.key : fmt::format("\"{}\"", entry.key);
    add_values(*entry.value, path.empty() ? key : path + "." + key, values);
  }
  if (node.kind == YamlKind::scalar) values[path] = node.text;
  if (node.kind == YamlKind::null) values[path] = "~";
}

std::string value_text_of(const ScenarioValues& values, const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end()) return "(not given)";
  if (found->second.size() <= kMostValueBytes) return found->second.empty() ? "''" : found->second;
  std::size_t end = kMostValueBytes;
  while (end > 0 && (static_cast<unsigned char>(found->second[end]) & 0xc0) == 0x80) --end;  // no part of a character
  return found->second.substr(0, end) + "...";
}

}  // namespace

ScenarioValues scenario_values(const Scenario& scenario) {
  ScenarioValues values;
  if (scenario.document) add_values(scenario.document->root(), "", values);
  return values.size() > kMostValues ? ScenarioValues{} : values;
}

std::vector<std::string> scenario_changes(const ScenarioValues& now, const ScenarioValues& then) {
  std::set<std::string> keys;
  for (const ScenarioValues* values : {&now, &then}) {
    for (const auto& [key, value] : *values) keys.insert(key);
  }
  std::vector<std::string> changes;
  std::size_t more = 0;
  for (const std::string& key : keys) {
    const auto left = now.find(key), right = then.find(key);
    if (left != now.end() && right != then.end() && left->second == right->second) continue;
    if (changes.size() == kMostChanges) {
      ++more;
    } else {
      changes.push_back(
          fmt::format("scenario changed: {} {} -> {}", key, value_text_of(then, key), value_text_of(now, key)));
    }
  }
  if (more > 0) changes.push_back(fmt::format("scenario changed: {} more keys", more));
  return changes;
}

}  // namespace tandem
