#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "engine/engine.h"
#ifdef TANDEM_WITH_CPU
#include "engine/cpu/cpu_engine.h"
#endif
#ifdef TANDEM_WITH_CUDA
#include "engine/cuda/cuda_engine.h"
#endif
#ifdef TANDEM_WITH_SIM
#include "engine/sim/sim_engine.h"
#endif

namespace tandem {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Engine> (*open)(EngineOptions);
  bool needs_topology;
  LibraryVersions (*libraries)();  // null: none that decides its times
};

constexpr auto kEngines = std::to_array<Entry>({
#ifdef TANDEM_WITH_CPU
    {"cpu", open_cpu_engine, false, nullptr},
#endif
#ifdef TANDEM_WITH_CUDA
    {"cuda", open_cuda_engine, false, cuda_libraries},
#endif
#ifdef TANDEM_WITH_SIM
    {"sim", open_sim_engine, true, nullptr},
#endif
});

}  // namespace

std::vector<std::string> built_engines() {
  std::vector<std::string> names;
  for (const Entry& entry : kEngines) names.emplace_back(entry.name);
  return names;
}

LibraryVersions engine_libraries(std::string_view name) {
  for (const Entry& entry : kEngines) {
    if (entry.name == name && entry.libraries != nullptr) return entry.libraries();
  }
  return {};
}

bool engine_needs_topology(std::string_view name) {
  return std::any_of(kEngines.begin(), kEngines.end(),
                     [name](const Entry& entry) { return entry.name == name && entry.needs_topology; });
}

std::unique_ptr<Engine> open_engine(std::string_view name, EngineOptions options) {
  for (const Entry& entry : kEngines) {
    if (entry.name == name) return entry.open(std::move(options));
  }
  const std::vector<std::string> built = built_engines();
  std::string message = fmt::format("engine '{}' is not built (built: {})", name, fmt::join(built, ", "));
  if (const std::string near = nearest_name(name, built); !near.empty()) {
    message += fmt::format("; did you mean '{}'?", near);
  }
  throw UnavailableError(message);
}

}  // namespace tandem
