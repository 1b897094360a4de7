#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "engine/engine_info.h"
#include "reports/run/report.h"

namespace tandem {

int print_version(bool json) {
  const Output output(CommonOptions{.json = json, .quiet = false, .no_color = false, .output = ""});
  const std::vector<std::string> engines = built_engines();
  nlohmann::ordered_json document;
  document["tandem"] = version();
  std::string text = fmt::format("tandem {}\nengines: {}\n", version(), fmt::join(engines, ", "));
  for (const EngineInfo& engine : all_engines()) {
    if (engine.libraries == nullptr) continue;
    for (const auto& [library, built_with] : engine.libraries()) {
      document[library] = built_with;
      text += fmt::format("{} {}\n", library, built_with);
    }
  }
  std::vector<std::string_view> others;
  for (const EngineInfo& engine : all_engines()) {
    if (!engine.built()) others.push_back(engine.name);
  }
  if (!others.empty()) text += fmt::format("not built: {}\n", fmt::join(others, ", "));
  document["engines"] = engines;
  document["not_built"] = others;
  if (json) {
    output.write_json(document);
  } else {
    output.write_text(text);
  }
  return kOk;
}

}  // namespace tandem
