#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/cpu/cpu_engine.h"
#include "engine/cuda/cuda_engine.h"
#include "engine/engine_info.h"
#include "engine/mpi/mpi_engine.h"
#include "engine/sim/sim_engine.h"

namespace tandem {
namespace {

#ifdef TANDEM_WITH_MPI
std::unique_ptr<Engine> open_mpi(EngineOptions options) {
#ifdef TANDEM_WITH_CUDA
  return open_mpi_engine(std::move(options), open_process_gpus);
#else
  return open_mpi_engine(std::move(options));
#endif
}
#endif

// The only place that knows which engines were built.
std::vector<EngineInfo> make_table() {
  EngineInfo cpu = cpu_engine_info();
  EngineInfo cuda = cuda_engine_info();
  EngineInfo mpi = mpi_engine_info();
  EngineInfo sim = sim_engine_info();
#ifdef TANDEM_WITH_CPU
  cpu.open = open_cpu_engine;
  cpu.libraries = cpu_libraries;
#endif
#ifdef TANDEM_WITH_CUDA
  cuda.open = open_cuda_engine;
  cuda.libraries = cuda_libraries;
#endif
#ifdef TANDEM_WITH_MPI
  mpi.open = open_mpi;
  mpi.libraries = mpi_libraries;
  mpi.join = join_mpi_job;
#endif
#if defined(TANDEM_WITH_MPI) && defined(TANDEM_WITH_CUDA)
  mpi.device_types.push_back(DeviceType::gpu);
#endif
#ifdef TANDEM_WITH_SIM
  sim.open = open_sim_engine;
  sim.libraries = sim_libraries;
#endif
  return {cpu, cuda, mpi, sim};
}

const EngineInfo& first_engine(bool needs_topology) {
  const auto engines = all_engines();
  return *std::find_if(engines.begin(), engines.end(),
                       [&](const EngineInfo& engine) { return engine.needs_topology == needs_topology; });
}

}  // namespace

std::span<const EngineInfo> all_engines() {
  static const std::vector<EngineInfo> table = make_table();
  return table;
}

const EngineInfo* find_engine(std::string_view name) {
  for (const EngineInfo& engine : all_engines()) {
    if (engine.name == name) return &engine;
  }
  return nullptr;
}

std::string unknown_engine_text(std::string_view name) {
  std::vector<std::string> known;
  for (const EngineInfo& engine : all_engines()) known.emplace_back(engine.name);
  std::string text = fmt::format("unknown engine '{}' (one of {})", name, fmt::join(known, ", "));
  if (const std::string near = nearest_name(name, known); !near.empty()) {
    text += fmt::format("; did you mean '{}'?", near);
  }
  return text;
}

const EngineInfo& engine_info(std::string_view name) {
  if (const EngineInfo* engine = find_engine(name)) return *engine;
  throw UnavailableError(unknown_engine_text(name));
}

const EngineInfo& machine_engine() {
  return first_engine(false);
}

const EngineInfo& model_engine() {
  return first_engine(true);
}

std::vector<std::string> built_engines() {
  std::vector<std::string> names;
  for (const EngineInfo& engine : all_engines()) {
    if (engine.built()) names.emplace_back(engine.name);
  }
  return names;
}

std::unique_ptr<Engine> open_engine(std::string_view name, EngineOptions options) {
  const EngineInfo& engine = engine_info(name);
  if (!engine.built()) {
    throw UnavailableError(fmt::format("engine '{}' is not built (built: {})", name, fmt::join(built_engines(), ", ")));
  }
  check_options(engine, options);
  return engine.open(std::move(options));
}

}  // namespace tandem
