// Describes every engine without opening it, whether or not this build has it. Scenarios, the schema, `tandem
// --version` and open_engine() rely on these descriptions instead of comparing names.
//
// Threads: any.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/launched_job.h"

namespace tandem {

// The libraries an engine was built with, or finds, and their versions: {"nccl", "2.28.9"}.
using LibraryVersions = std::vector<std::pair<std::string, std::string>>;

// Which Faults an engine can make happen: none; slow devices (by a factor of at least 1) and lost workers; all.
enum class FaultSupport : std::uint8_t { none, devices, all };

struct EngineInfo {
  std::string_view name;            // "cpu"; also the name of its folder
  bool needs_topology = false;      // models a machine instead of being one: EngineOptions::topology is required
  bool seeded_schedule = false;     // takes EngineOptions::schedule_seed
  bool graphs = false;              // takes EngineOptions::graphs
  bool models_collectives = false;  // takes EngineOptions::collectives
  bool optional_values = false;     // takes ValueMode::none
  bool symmetry = false;            // takes EngineOptions::alike
  FaultSupport faults = FaultSupport::none;                  // of EngineOptions::faults
  std::vector<DeviceType> device_types = {DeviceType::cpu};  // that a worker may compute on
  // The type of the devices of a job that names neither a type nor a topology.
  DeviceType default_device = DeviceType::cpu;

  // These are null where the engine is not built. `open` takes options that check_options() has accepted.
  LibraryVersions (*libraries)() = nullptr;
  std::unique_ptr<Engine> (*open)(EngineOptions options) = nullptr;
  // Joins the processes that were launched together with this one, over which the engine then spreads a run. Returns
  // null where this process is alone. The pointer itself is null for engines whose runs stay in one process.
  LaunchedJob* (*join)() = nullptr;

  bool built() const { return open != nullptr; }
};

// All engines, in alphabetical order. Valid as long as the program runs.
std::span<const EngineInfo> all_engines();

const EngineInfo* find_engine(std::string_view name);    // null where there is no such engine
const EngineInfo& engine_info(std::string_view name);    // throws UnavailableError with a suggestion instead
std::string unknown_engine_text(std::string_view name);  // "unknown engine 'cup' (one of ...); did you mean 'cpu'?"

// The first engine that is this machine: scenarios run on it and calibrations measure it by default.
const EngineInfo& machine_engine();
// The first engine that models a machine: it predicts runs by default.
const EngineInfo& model_engine();

// Throws a UsageError that names the first option the engine lacks, or the worker that it cannot have.
void check_options(const EngineInfo& engine, const EngineOptions& options);

}  // namespace tandem
