#include "scenarios/import/base/json_value.h"

#include <fmt/format.h>

#include <unordered_set>

#include "scenarios/import/base/byte_source.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::size_t kMostValues = 1'000'000;

JsonValue value_here(JsonStream& json, std::size_t& count) {
  if (++count > kMostValues) json.fail("has more than a million values: no configuration has");
  JsonValue value;
  value.kind = json.part();
  value.line = json.line();
  value.column = json.column();
  if (value.is_object()) {
    std::unordered_set<std::string> keys;
    while (json.next() != JsonPart::end_object) {
      if (!keys.emplace(json.text()).second)
        json.fail(fmt::format("a second key '{}'", shortened(std::string(json.text()))));
      value.members.push_back({std::string(json.text()), {}});
      json.next();
      value.members.back().value = value_here(json, count);
    }
  } else if (value.is_list()) {
    while (json.next() != JsonPart::end_array) value.items.push_back(value_here(json, count));
  } else {
    value.text = json.text();
  }
  return value;
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  const JsonValue* found = nullptr;
  for (const Member& member : members) {
    if (member.key == key) found = &member.value;
  }
  return found;
}

JsonValue read_value(JsonStream& json) {
  std::size_t count = 0;
  return value_here(json, count);
}

JsonValue read_json(const InputFile& file) {
  ByteSource source(file);
  JsonStream json(source);
  json.next();
  JsonValue value = read_value(json);
  json.next();
  return value;
}

}  // namespace tandem
