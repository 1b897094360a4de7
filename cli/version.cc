#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "engine/engine.h"
#include "reports/report.h"

namespace tandem {

int print_version(bool json) {
  const Output output(CommonOptions{.json = json, .quiet = false, .no_color = false, .output = ""});
  const std::vector<std::string> engines = built_engines();
  const std::vector<std::pair<std::string, std::string>> libraries = {{"simgrid", TANDEM_SIMGRID_VERSION},
                                                                      {"openblas", TANDEM_OPENBLAS_VERSION}};
  nlohmann::ordered_json document;
  document["tandem"] = version();
  std::string text = fmt::format("tandem {}\nengines: {}\n", version(), fmt::join(engines, ", "));
  for (const auto& [library, built_with] : libraries) {
    document[library] = built_with.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(built_with);
    if (!built_with.empty()) text += fmt::format("{} {}\n", library, built_with);
  }
  for (const std::string& engine : engines) {
    for (const auto& [library, built_with] : engine_libraries(engine)) {
      document[library] = built_with;
      text += fmt::format("{} {}\n", library, built_with);
    }
  }
  document["engines"] = engines;
  if (json) {
    output.write_json(document);
  } else {
    output.write_text(text);
  }
  return kOk;
}

}  // namespace tandem
