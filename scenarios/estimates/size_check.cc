#include "scenarios/estimates/size_check.h"

#include <algorithm>

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

RunSize SizeCheck::size(Representatives representatives) {
  RunSize devices = size_of(job_, 0, representatives);
  if (devices.simulated * job_.scenario.steps <= kMany) return devices;
  if (!records_) records_ = count_records_();
  return size_of(job_, *records_, representatives);
}

std::string SizeCheck::problem_here() const {
  const bool computes_here = job_.scenario.devices.type == DeviceType::cpu;
  const double of_servers = tensor_bytes_of_servers(job_) / static_cast<double>(job_.devices);
  return host_problem_here(job_.devices, of_servers + (computes_here ? tensor_bytes_of_device(job_) : 0),
                           memory_share_);
}

void SizeCheck::before_run() {
  if (!job_.engine.built()) return;  // opening it will say so
  std::string problem;
  if (!job_.models_machine) {
    problem = problem_here();
  } else {
    problem = simulation_problem(size_of(job_, 0, representatives_));
    if (problem.empty()) problem = simulation_problem(size(representatives_));
  }
  if (!problem.empty()) throw refusal(job_.scenario, problem);
}

void SizeCheck::before_next_run() {
  begun_ = 0;
  if (most_ > 0) return;
  const RunSize all = size({});
  problem_ = simulation_problem(all);
  if (problem_.empty()) return;
  most_ = std::max(1, static_cast<int>(fitting_share(all) * job_.workers));
}

void SizeCheck::begin_worker() {
  if (most_ > 0 && ++begun_ > most_) throw refusal(job_.scenario, "workers do not do the same here: " + problem_);
}

}  // namespace tandem
