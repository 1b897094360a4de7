#include "scenarios/job/alike.h"

#include <cstdint>
#include <map>
#include <numeric>

#include "strategies/input/distributed_dataset.h"
#include "strategies/parallel/division.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

// A device's share of the batch and of the model.
using Share = std::vector<std::int64_t>;

std::vector<Share> shares_of_division(const Division& division, const ParallelOptions& options) {
  std::vector<Share> shares;
  for (int rank = 0; rank < options.devices(); ++rank) shares.push_back(division.kind_of(rank, options));
  return shares;
}

std::vector<Share> shares_of_replicas(int batch, int replicas) {
  std::vector<Share> shares;
  for (const std::int64_t examples : rebatch(batch, replicas)) shares.push_back({examples});
  return shares;
}

}  // namespace

std::vector<int> alike_workers(const Job& job) {
  if (job.servers > 0 || job.trace != nullptr || evaluators(job.scenario) > 0) return {};
  if (job.mesh && job.mesh->devices() != job.devices) return {};  // the rules refuse it
  const std::vector<Share> shares =
      job.mesh ? shares_of_division(*job.strategy.division->how, *job.mesh)
               : shares_of_replicas(job.scenario.workload.batch, static_cast<int>(job.devices));
  const int devices = job.scenario.devices.per_worker;
  std::map<std::vector<Share>, int> numbers;
  std::vector<int> alike;
  for (int worker = 0; worker < job.workers; ++worker) {
    const auto first = shares.begin() + std::ptrdiff_t{worker} * devices;
    const auto [known, is_new] = numbers.try_emplace({first, first + devices}, static_cast<int>(numbers.size()));
    alike.push_back(known->second);
  }
  return alike;
}

int alike_devices(const Job& job) {
  if (!job.divides_model || job.layers == nullptr || job.strategy.is_registered) return 1;
  if (job.alike.empty() || job.mesh->devices() != job.devices) return 1;
  if (job.scenario.devices.type != DeviceType::gpu) return 1;  // threads share cores
  if (job.layers->offload.any()) return 1;                     // devices share the ways to their host
  const Division& division = *job.strategy.division->how;
  const DivisionRequest request{job.layers->model, *job.layers, *job.mesh};
  if (division.problem(request)) return 1;  // the rules refuse it
  return std::gcd(division.alike_neighbours(request), job.scenario.devices.per_worker);
}

}  // namespace tandem
