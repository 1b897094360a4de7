#include "scenarios/import/models/config_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 40;

}  // namespace

ConfigValues::ConfigValues(const JsonValue& object, std::string file, std::string path)
    : object_(&object),
      file_(std::move(file)),
      path_(std::move(path)),
      used_(std::make_shared<std::set<const JsonValue*>>()) {}

const JsonValue* ConfigValues::find(Names names) const {
  const JsonValue* found = nullptr;
  for (const std::string_view name : names) {
    const JsonValue* value = object_->find(name);
    if (value == nullptr) continue;
    used_->insert(value);
    if (found == nullptr && !value->is_null()) found = value;
  }
  return found;
}

std::vector<std::string> ConfigValues::unused() const {
  std::vector<std::string> names;
  for (const JsonValue::Member& member : object_->members) {
    const JsonValue& value = member.value;
    const bool is_empty = value.is_null() || (value.is_list() && value.items.empty()) ||
                          (value.is_object() && value.members.empty()) || value.text == "false" ||
                          (value.kind == JsonPart::number && std::strtod(value.text.c_str(), nullptr) == 0) ||
                          (value.kind == JsonPart::string && value.text.empty());
    if (!is_empty && !used_->contains(&value)) names.push_back(member.key);
  }
  return names;
}

std::string_view ConfigValues::name_of(Names names, const JsonValue& value) const {
  for (const std::string_view name : names) {
    if (object_->find(name) == &value) return name;
  }
  return *names.begin();
}

std::string ConfigValues::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void ConfigValues::fail(const JsonValue& at, std::string_view name, const std::string& message) const {
  throw InputError({{file_, at.line, at.column, path_of(name), message}});
}

Diagnostic ConfigValues::place_of(std::string_view name) const {
  const JsonValue* const value = find({name});
  const JsonValue& at = value == nullptr ? *object_ : *value;
  return problem_at(file_, {.line = at.line, .column = at.column}, "", path_of(name));
}

std::optional<ConfigValues> ConfigValues::map(Names names) const {
  const JsonValue* value = find(names);
  if (value == nullptr || !value->is_object()) return std::nullopt;
  return ConfigValues(*value, file_, path_of(name_of(names, *value)));
}

std::optional<std::int64_t> ConfigValues::default_of(Names names) const {
  if (defaults_ == nullptr) return std::nullopt;
  const auto found = defaults_->find(*names.begin());
  return found == defaults_->end() ? std::nullopt : std::optional(found->second);
}

std::int64_t ConfigValues::whole(Names names, std::int64_t least, std::int64_t otherwise) const {
  const JsonValue* value = find(names);
  if (value == nullptr) return default_of(names).value_or(otherwise);
  const double number = std::strtod(value->text.c_str(), nullptr);
  const bool is_number = value->kind == JsonPart::number && number == std::floor(number);
  if (!is_number || number < static_cast<double>(least) || number > static_cast<double>(kMostSize)) {
    const std::string found = value->is_object() || value->is_list() ? "a list" : "'" + value->text + "'";
    fail(*value, name_of(names, *value),
         fmt::format("expected a whole number from {} to {}, found {}", least, kMostSize, found));
  }
  return static_cast<std::int64_t>(number);
}

std::int64_t ConfigValues::size(Names names) const {
  if (!has(names) && !default_of(names))
    fail(*object_, *names.begin(), "is missing, and the size of the model depends on it");
  return whole(names, 1, 1);
}

std::int64_t ConfigValues::size(Names names, std::int64_t otherwise) const {
  return whole(names, 1, otherwise);
}

std::int64_t ConfigValues::count(Names names, std::int64_t otherwise) const {
  return whole(names, 0, otherwise);
}

std::int64_t ConfigValues::count_of_layers(Names names, std::int64_t otherwise) const {
  const JsonValue* value = find(names);
  if (value == nullptr || !value->is_list()) return count(names, otherwise);
  const std::vector<std::int64_t> all = counts({name_of(names, *value)});
  const auto other = std::find_if(all.begin(), all.end(), [&](std::int64_t one) { return one != all.front(); });
  if (all.empty() || other != all.end()) {
    fail(*value, name_of(names, *value), "differs from layer to layer, which is not modelled");
  }
  return all.front();
}

bool ConfigValues::boolean(Names names, bool otherwise) const {
  const JsonValue* value = find(names);
  if (value == nullptr) return otherwise;
  if (value->kind != JsonPart::boolean) {
    fail(*value, name_of(names, *value), fmt::format("expected true or false, found '{}'", value->text));
  }
  return value->text == "true";
}

double ConfigValues::number(Names names, double otherwise) const {
  const JsonValue* value = find(names);
  if (value == nullptr) return otherwise;
  if (value->kind != JsonPart::number) {
    fail(*value, name_of(names, *value), fmt::format("expected a number, found '{}'", value->text));
  }
  return std::strtod(value->text.c_str(), nullptr);
}

std::string ConfigValues::text(Names names, std::string_view otherwise) const {
  const JsonValue* value = find(names);
  return value != nullptr && value->kind == JsonPart::string ? value->text : std::string(otherwise);
}

std::vector<std::string> ConfigValues::texts(Names names) const {
  std::vector<std::string> result;
  const JsonValue* value = find(names);
  if (value == nullptr || !value->is_list()) return result;
  for (const JsonValue& item : value->items) result.push_back(item.text);
  return result;
}

std::vector<std::int64_t> ConfigValues::counts(Names names) const {
  std::vector<std::int64_t> result;
  const JsonValue* value = find(names);
  if (value == nullptr || !value->is_list()) return result;
  for (const JsonValue& item : value->items) {
    const double number = item.kind == JsonPart::number ? std::strtod(item.text.c_str(), nullptr) : -1;
    if (number < 0 || number > static_cast<double>(kMostSize) || number != std::floor(number)) {
      fail(item, *names.begin(), fmt::format("expected whole numbers, found '{}'", item.text));
    }
    result.push_back(static_cast<std::int64_t>(number));
  }
  return result;
}

}  // namespace tandem
