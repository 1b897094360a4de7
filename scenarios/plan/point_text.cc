#include "scenarios/plan/point_text.h"

#include <algorithm>
#include <cctype>

#include "scenarios/import/base/yaml_writer.h"
#include "scenarios/scenario/named_files.h"
#include "scenarios/scenario/shared_parts.h"
#include "scenarios/sweep/sweep_space.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOnALine = 96;

std::string key_text(const std::string& key) {
  const bool is_plain = !key.empty() && (std::isalnum(static_cast<unsigned char>(key.front())) != 0 || key[0] == '_') &&
                        key.find_first_of(",[]{}#") == std::string::npos && key.find(": ") == std::string::npos;
  return is_plain ? key : yaml_text(key);
}

// A word as it was written; in a list or map on one line, with quotes where its characters would end it.
std::string scalar_text(const YamlNode& value, bool is_inside) {
  const bool ends_there = is_inside && value.text.find_first_of(",[]{}") != std::string::npos;
  return value.quoted || ends_there ? yaml_text(value.text) : value.text;
}

// Returns a map or list on one line; `text_of_item` gives the text of a scalar in it.
template <typename Text>
std::string flow_text(const YamlNode& value, const Text& text_of_item) {
  std::string text;
  const auto add = [&text](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
  switch (value.kind) {
    case YamlKind::null:
      return "~";
    case YamlKind::scalar:
      return text_of_item(value);
    case YamlKind::list:
      for (const YamlNode* item : value.items) add(flow_text(*item, text_of_item));
      return "[" + text + "]";
    case YamlKind::map:
      for (const YamlNode::Entry& entry : value.entries)
        add(key_text(entry.key) + ": " + flow_text(*entry.value, text_of_item));
      return "{" + text + "}";
  }
  TANDEM_UNREACHABLE("a kind of value");
}

// Writes values of a document in another folder.
class NodeWriter {
 public:
  NodeWriter(fs::path from, fs::path to) : from_(std::move(from)), to_(std::move(to)) {}

  YamlMap map(const YamlNode& node) const {
    YamlMap map;
    for (const YamlNode::Entry& entry : node.entries) add(map, entry.key, *entry.value);
    return map;
  }

 private:
  void add(YamlMap& map, const std::string& key, const YamlNode& value) const {
    if (value.kind == YamlKind::map && key.size() + line_of(value).size() > kMostOnALine) {
      map.below(key_text(key), this->map(value));
    } else if (value.kind == YamlKind::list && key.size() + line_of(value).size() > kMostOnALine) {
      std::vector<std::string> lines;
      for (const YamlNode* item : value.items) lines.push_back(line_of(*item));
      map.list(key_text(key), lines);
    } else {
      map.set(key_text(key), line_of(value));
    }
  }

  std::string line_of(const YamlNode& value) const {
    if (value.kind == YamlKind::scalar) return text_of_scalar(value, false);
    return flow_text(value, [this](const YamlNode& item) { return text_of_scalar(item, true); });
  }

  // Files that it names are found from the other folder.
  std::string text_of_scalar(const YamlNode& value, bool is_inside) const {
    std::error_code ignored;
    const fs::path file = from_ / value.text;
    if (!is_file_name(value.text) || !fs::is_regular_file(file, ignored)) return scalar_text(value, is_inside);
    return yaml_text(fs::absolute(file).lexically_proximate(fs::absolute(to_)).string());
  }

  fs::path from_, to_;
};

}  // namespace

std::string yaml_line(const YamlNode& value) {
  if (value.kind == YamlKind::scalar) return scalar_text(value, false);
  return flow_text(value, [](const YamlNode& item) { return scalar_text(item, true); });
}

Scenario scenario_of_point(const Scenario& scenario, std::size_t place) {
  const SweepSpace space(scenario);
  SharedParts parts = space.parts();
  return space.scenario(space.points().at(place), parts);
}

std::string text_of_point(const Scenario& scenario, std::size_t place, const fs::path& folder) {
  const Scenario chosen = scenario_of_point(scenario, place);
  return NodeWriter(fs::path(scenario.file).parent_path(), folder).map(chosen.document->root()).text();
}

std::string space_text(const Scenario& scenario) {
  YamlMap file;
  const YamlNode* sweep = node_at(scenario.document->root(), "sweep");
  YamlMap values, space;
  if (const YamlNode* fields = node_at(*sweep, "values")) {
    for (const YamlNode::Entry& entry : fields->entries) values.set(key_text(entry.key), yaml_line(*entry.value));
  }
  space.below("values", values);
  if (const YamlNode* where = node_at(*sweep, "where")) {
    std::vector<std::string> conditions;
    for (const YamlNode* one : where->items) conditions.push_back(yaml_line(*one));
    space.list("where", conditions);
  }
  return file.below("sweep", space).text();
}

}  // namespace tandem
