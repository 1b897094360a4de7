#include "scenarios/size_check.h"

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/job.h"

namespace tandem {
namespace {

// With so many device steps to simulate, simulating one more to count its records costs little.
constexpr std::int64_t kMany = 1024;

SizeError refusal(const Scenario& scenario, const std::string& problem) {
  return SizeError(scenario.problem_at("devices", problem).text());
}

}  // namespace

std::optional<double> SizeCheck::memory_bytes() const {
  std::optional<double> bytes = available_memory_bytes();
  if (bytes) *bytes *= memory_share_;
  return bytes;
}

std::string SizeCheck::simulation_problem(const RunSize& size) const {
  return simulation_problem_here(size, memory_share_);
}

// Returns the share of a simulation for which there is room.
double SizeCheck::fitting_share(const RunSize& size) const {
  double share = 1;
  if (const auto bytes = memory_bytes()) share = std::min(share, *bytes / size.bytes());
  if (const auto addresses = available_addresses()) share = std::min(share, *addresses / size.addresses());
  return share;
}

RunSize SizeCheck::size(bool symmetry) {
  const RunSize devices = size_of(scenario_, 0, symmetry);
  if (devices.simulated * scenario_.steps <= kMany) return devices;
  if (!records_) records_ = count_records_();
  return size_of(scenario_, *records_, symmetry);
}

std::string SizeCheck::problem_here() const {
  const bool computes_here = scenario_.devices.type == DeviceType::cpu;
  return host_problem_here(training_devices(scenario_), computes_here ? tensor_bytes_of_device(scenario_) : 0,
                           memory_share_);
}

void SizeCheck::before_run() {
  const EngineInfo& engine = engine_info(scenario_.engine.name);
  if (!engine.built()) return;  // opening it will say so
  std::string problem;
  if (!engine.needs_topology) {
    problem = problem_here();
  } else {
    problem = simulation_problem(size_of(scenario_, 0, symmetry_));
    if (problem.empty()) problem = simulation_problem(size(symmetry_));
  }
  if (!problem.empty()) throw refusal(scenario_, problem);
}

void SizeCheck::before_next_run() {
  begun_ = 0;
  if (most_ > 0) return;
  const RunSize all = size(false);
  problem_ = simulation_problem(all);
  if (problem_.empty()) return;
  most_ = std::max(1, static_cast<int>(fitting_share(all) * training_workers(scenario_)));
}

void SizeCheck::begin_worker() {
  if (most_ > 0 && ++begun_ > most_) throw refusal(scenario_, "workers do not do the same here: " + problem_);
}

}  // namespace tandem
