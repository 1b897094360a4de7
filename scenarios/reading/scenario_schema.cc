#include "scenarios/reading/scenario_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/engine_info.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

std::string enumeration(const std::vector<std::string>& names, std::string_view usual) {
  return fmt::format(R"({{"enum": ["{}"], "default": "{}"}})", fmt::join(names, R"(", ")"), usual);
}

// Puts `list` where the file has the comment that announces it.
void fill_in(std::string& schema, std::string_view what, const std::string& list) {
  const std::string comment = fmt::format(R"({{"$comment": "tandem schema lists the {} here"}})", what);
  const std::size_t at = schema.find(comment);
  TANDEM_CHECK(at != std::string::npos, comment);
  schema.replace(at, comment.size(), list);
}

// Returns what a value of a key may be.
nlohmann::ordered_json definition_of(const StrategyKey& key) {
  using Kind = StrategyKey::Kind;
  nlohmann::ordered_json definition;
  const auto usual = [&](const auto& value) { definition["default"] = value; };
  switch (key.kind) {
    case Kind::count:
      definition = {{"type", "integer"}, {"minimum", key.least}, {"maximum", key.most}};
      break;
    case Kind::number:
      definition = {{"type", "number"}, {"minimum", key.least}, {"maximum", key.most}};
      break;
    case Kind::quantity:
      definition = {{"type", {"number", "string"}}};
      break;
    case Kind::boolean:
      definition = {{"type", "boolean"}};
      break;
    case Kind::choice:
      definition = {{"enum", key.choices}};
      break;
    case Kind::text:
      definition = {{"type", "string"}, {"minLength", 1}};
      break;
  }
  std::visit(usual, key.usual);
  definition["description"] = key.meaning;
  return definition;
}

// Adds the keys that registered strategies have declared. Several strategies may declare one of the same name.
void add_own_keys(std::string& text) {
  std::map<std::string, nlohmann::ordered_json> keys;
  for (const std::string& name : strategy_names()) {
    for (const StrategyKey& key : strategy_info(name).keys) {
      nlohmann::ordered_json definition = definition_of(key);
      definition["description"] = fmt::format("{} (strategy {})", key.meaning, name);
      keys[key.name].push_back(std::move(definition));
    }
  }
  if (keys.empty()) return;
  nlohmann::ordered_json schema = nlohmann::ordered_json::parse(text);
  for (auto& [name, definitions] : keys) {
    schema["properties"]["strategy"]["properties"][name] =
        definitions.size() == 1 ? definitions.front() : nlohmann::ordered_json{{"anyOf", definitions}};
  }
  text = schema.dump(2) + "\n";
}

}  // namespace

std::string scenario_schema() {
  std::string schema(scenario_schema_file());
  std::vector<std::string> engines;
  for (const EngineInfo& engine : all_engines()) engines.emplace_back(engine.name);
  fill_in(schema, "engines", enumeration(engines, machine_engine().name));
  fill_in(schema, "strategies", enumeration(strategy_names(), default_strategy_name()));
  fill_in(schema, "cross-device operations", enumeration(cross_device_ops_names(), "auto"));
  add_own_keys(schema);
  return schema;
}

}  // namespace tandem
