// Documents with other values at some paths.
#include <algorithm>

#include "topologies/base/strict_yaml.h"

namespace tandem {

PathKey first_key_of(std::string_view path, const YamlNode* map) {
  if (!path.empty() && (path[0] == '"' || path[0] == '\'')) {
    const std::size_t end = path.find(path[0], 1);
    const bool is_closed = end != std::string_view::npos && (end + 1 == path.size() || path[end + 1] == '.');
    if (is_closed && end + 1 == path.size()) return {std::string(path.substr(1, end - 1))};
    if (is_closed) return {std::string(path.substr(1, end - 1)), path.substr(end + 2), false};
  }
  std::size_t length = std::min(path.find('.'), path.size());
  if (map != nullptr) {
    for (const YamlNode::Entry& entry : map->entries) {
      const bool begins =
          path.starts_with(entry.key) && (path.size() == entry.key.size() || path[entry.key.size()] == '.');
      if (begins) length = std::max(length, entry.key.size());
    }
  }
  if (length == path.size()) return {std::string(path)};
  return {std::string(path.substr(0, length)), path.substr(length + 1), false};
}

const YamlNode* node_at(const YamlNode& root, std::string_view path) {
  const YamlNode* node = &root;
  for (bool is_last = path.empty(); node != nullptr && !is_last;) {
    const PathKey first = first_key_of(path, node);
    const YamlNode* below = nullptr;
    for (const YamlNode::Entry& entry : node->entries) {
      if (entry.key == first.key) below = entry.value;
    }
    node = below;
    path = first.below;
    is_last = first.is_last;
  }
  return node;
}

// Copies the maps on the path first, because they may belong to the base and be aliased elsewhere in it.
void YamlDocument::change(YamlNode& map, std::string_view path, const YamlNode* value) {
  TANDEM_CHECK(map.kind == YamlKind::map, "a change below a value that is no map");
  const PathKey first = first_key_of(path, &map);
  auto entry =
      std::find_if(map.entries.begin(), map.entries.end(), [&](const auto& known) { return known.key == first.key; });
  const bool is_new = entry == map.entries.end();
  if (value == nullptr && is_new) return;
  if (value == nullptr && first.is_last) {
    map.entries.erase(entry);
    return;
  }
  if (is_new) {
    entry = map.entries.insert(entry, {first.key, value->line, value->column, nullptr});
  }
  if (first.is_last) {
    entry->value = value;
    return;
  }
  const YamlNode empty{.kind = YamlKind::map, .line = entry->line, .column = entry->column};
  YamlNode& below = own(entry->value != nullptr ? *entry->value : empty);
  entry->value = &below;
  change(below, first.below, value);
}

YamlDocument YamlDocument::changed(std::shared_ptr<const YamlDocument> base, const std::vector<Change>& changes) {
  YamlDocument document;
  document.file_ = base->file_;
  document.problems_ = base->problems_;
  document.settings_ = base->settings_;
  YamlNode& root = document.own(base->root());
  document.root_ = &root;
  document.base_ = std::move(base);
  for (const Change& one : changes) document.change(root, one.path, one.value);
  return document;
}

Diagnostic YamlDocument::problem_at(int line, int column, std::string path, std::string message) const {
  if (line >= 0) return {file_, line, column, std::move(path), std::move(message)};
  return {settings_[static_cast<std::size_t>(-line - 1)], 0, 0, std::move(path), std::move(message)};
}

void YamlDocument::set(const Setting& setting, YamlNode& root) {
  const auto refuse = [&](std::string message) { throw InputError({{setting.name, 0, 0, "", std::move(message)}}); };
  const YamlNode* node = &root;
  std::string_view rest = setting.path;
  for (std::string above; node != nullptr;) {  // what is on the way to the path must be a map
    if (node->kind != YamlKind::map) refuse("'" + above + "' is no map that has '" + std::string(rest) + "'");
    const PathKey first = first_key_of(rest, node);
    if (first.key.empty()) refuse("names no key");
    if (first.is_last) break;
    above += (above.empty() ? "" : ".") + first.key;
    const auto is_named = [&](const YamlNode::Entry& entry) { return entry.key == first.key; };
    const auto entry = std::find_if(node->entries.begin(), node->entries.end(), is_named);
    node = entry == node->entries.end() ? nullptr : entry->value;
    rest = first.below;
  }
  if (setting.value.find_first_not_of(" \t\r\n") == std::string::npos) {
    refuse("has no value; '~' leaves the key out");
  }
  YamlDocument value = parse(setting.value, setting.name);
  for (Diagnostic problem : value.problems_) {
    problem.path = setting.path;
    problems_.push_back(std::move(problem));
  }
  settings_.push_back(setting.name);
  const int line = -static_cast<int>(settings_.size());
  for (const auto& one : value.nodes_) {
    one->line = line;
    for (YamlNode::Entry& entry : one->entries) entry.line = line;
  }
  change(root, setting.path, value.root_->kind == YamlKind::null ? nullptr : value.root_);
  for (auto& one : value.nodes_) nodes_.push_back(std::move(one));
}

YamlDocument YamlDocument::with_settings(std::shared_ptr<const YamlDocument> base,
                                         const std::vector<Setting>& settings) {
  YamlDocument document = changed(std::move(base), {});
  auto& root = const_cast<YamlNode&>(*document.root_);  // its own copy
  for (const Setting& setting : settings) document.set(setting, root);
  return document;
}

}  // namespace tandem
