#include "scenarios/shared_parts.h"

#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

template <typename Map>
typename Map::mapped_type part_in(const Map& parts, const std::string& text) {
  const auto found = parts.find(text);
  return found == parts.end() ? nullptr : found->second;
}

}  // namespace

std::string text_of(const YamlNode& value) {
  std::string text;
  const auto add = [&text](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
  switch (value.kind) {
    case YamlKind::null:
      return "null";
    case YamlKind::scalar:
      return value.text;
    case YamlKind::list:
      for (const YamlNode* item : value.items) add(text_of(*item));
      return "[" + text + "]";
    case YamlKind::map:
      for (const YamlNode::Entry& entry : value.entries) add(entry.key + ": " + text_of(*entry.value));
      return "{" + text + "}";
  }
  TANDEM_UNREACHABLE("a kind of value");
}

std::shared_ptr<const Topology> SharedParts::topology(const std::string& text) const {
  return part_in(kept_.topologies, text);
}

std::shared_ptr<const Model> SharedParts::model(const std::string& text) const {
  return part_in(kept_.models, text);
}

void SharedParts::add(const std::string& text, std::shared_ptr<const Topology> topology) {
  new_.topologies[text] = std::move(topology);
}

void SharedParts::add(const std::string& text, std::shared_ptr<const Model> model) {
  new_.models[text] = std::move(model);
}

void SharedParts::settle(bool is_right) {
  if (is_right) {
    kept_.topologies.merge(new_.topologies);
    kept_.models.merge(new_.models);
  }
  new_ = {};
}

}  // namespace tandem
