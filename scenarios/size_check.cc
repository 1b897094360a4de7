#include "scenarios/size_check.h"

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/job.h"

namespace tandem {
namespace {

// Steps of simulated devices: one more, to count its records, costs little beside so many.
constexpr std::int64_t kMany = 1024;

RunError refusal(const Scenario& scenario, const std::string& problem) {
  return RunError(scenario.problem_at("devices", problem).text());
}

}  // namespace

RunSize SizeCheck::size(bool symmetry) {
  const RunSize devices = size_of(scenario_, 0, symmetry);
  if (devices.simulated * scenario_.steps <= kMany) return devices;
  if (!records_) records_ = count_records_();
  return size_of(scenario_, *records_, symmetry);
}

void SizeCheck::before_run() {
  const EngineInfo& engine = engine_info(scenario_.engine.name);
  if (!engine.built()) return;  // whoever opens it says so
  std::string problem;
  if (!engine.needs_topology) {
    const auto threads = available_threads();
    if (threads) problem = thread_problem(size_of(scenario_, 0, false).devices, *threads);
  } else if (const auto bytes = available_memory_bytes()) {
    problem = size_problem(size_of(scenario_, 0, symmetry_), *bytes);
    if (problem.empty()) problem = size_problem(size(symmetry_), *bytes);
  }
  if (!problem.empty()) throw refusal(scenario_, problem);
}

void SizeCheck::before_next_run() {
  begun_ = 0;
  const auto bytes = available_memory_bytes();
  if (!bytes || most_ > 0) return;
  const RunSize all = size(false);
  problem_ = size_problem(all, *bytes);
  if (problem_.empty()) return;
  most_ = std::max(1, static_cast<int>(*bytes / all.bytes() * training_workers(scenario_)));
}

void SizeCheck::begin_worker() {
  if (most_ > 0 && ++begun_ > most_) throw refusal(scenario_, "workers do not do the same here: " + problem_);
}

}  // namespace tandem
