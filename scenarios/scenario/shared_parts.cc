#include "scenarios/scenario/shared_parts.h"

#include "topologies/base/strict_yaml.h"

namespace tandem {

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

void SharedParts::settle(bool is_right) {
  if (is_right) kept_.merge(new_);
  new_.clear();
}

}  // namespace tandem
