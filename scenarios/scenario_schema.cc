#include "scenarios/scenario_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

}  // namespace

std::string scenario_schema() {
  std::string schema(scenario_schema_file());
  std::vector<std::string> engines;
  for (const EngineInfo& engine : all_engines()) engines.emplace_back(engine.name);
  fill_in(schema, "engines", enumeration(engines, machine_engine().name));
  fill_in(schema, "strategies", enumeration(strategy_names(), default_strategy_name()));
  fill_in(schema, "cross-device operations", enumeration(cross_device_ops_names(), "auto"));
  return schema;
}

}  // namespace tandem
