#include "strategies/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/input/input_workers.h"

namespace tandem {
namespace {

std::vector<Device*> server_devices(Worker& worker) {
  std::vector<Device*> servers;
  for (const WorkerSpec& spec : worker.cluster()) {
    if (spec.job != "ps") continue;
    servers.push_back(&worker.device({.job = spec.job, .task = spec.task, .type = DeviceType::cpu, .index = 0}));
  }
  return servers;
}

std::vector<Device*> servers_or_local(Worker& worker, const std::vector<Device*>& compute) {
  if (worker.job() == "ps") {
    throw ValueError(fmt::format("ps task {} keeps variables for the others and runs no strategy", worker.task()));
  }
  std::vector<Device*> servers = server_devices(worker);
  return servers.empty() ? local_parameter_device(worker, compute) : servers;
}

bool is_first_worker(const Worker& worker) {
  const auto cluster = worker.cluster();
  const bool has_chief =
      std::any_of(cluster.begin(), cluster.end(), [](const auto& spec) { return spec.job == "chief"; });
  return worker.job() == "chief" || (!has_chief && worker.task() == 0);
}

}  // namespace

VariablePlacement variable_placement_from_name(std::string_view name) {
  if (name == "round_robin") return VariablePlacement::round_robin;
  if (name == "by_size") return VariablePlacement::by_size;
  if (name == "by_hash") return VariablePlacement::by_hash;
  throw ValueError(fmt::format("no placement '{}': round_robin, by_size or by_hash", name));
}

ParameterServerExtended::ParameterServerExtended(Worker& worker, std::vector<Device*> compute_devices,
                                                 ParameterServerOptions options)
    : StoredExtended(worker, compute_devices, servers_or_local(worker, compute_devices)),
      options_(std::move(options)),
      has_servers_(!server_devices(worker).empty()),
      is_chief_(is_first_worker(worker)) {
  const int tasks = static_cast<int>(parameter_devices().size());
  switch (options_.placement) {
    case VariablePlacement::round_robin:
      next_task_ = RoundRobinPlacement(tasks);
      break;
    case VariablePlacement::by_size:
      next_task_ = GreedyPlacement(tasks);
      break;
    case VariablePlacement::by_hash:
      next_task_ = HashPlacement(tasks);
      break;
  }
}

// Counted by each worker for itself: workers that create the same variables in the same order agree.
Device& ParameterServerExtended::place(const VariableSpec& spec) {
  const int task = next_task_({.name = spec.name, .is_variable = true, .shape = spec.shape, .dtype = spec.dtype});
  return *parameter_devices().at(static_cast<std::size_t>(task));
}

std::shared_ptr<StoredTensor> ParameterServerExtended::store(const VariableSpec& spec, Device& device) {
  if (!has_servers_) return new_store(spec, device);
  const std::string key = fmt::format("variable {} {}", device.id().text(), spec.name);
  auto stored = std::static_pointer_cast<StoredTensor>(
      worker().shared(key, [&]() -> std::shared_ptr<void> { return new_store(spec, device); }));
  if (stored->tensor.shape() != spec.shape || stored->tensor.dtype() != spec.dtype) {
    throw ValueError(fmt::format("variable '{}' of shape {} exists on {} with shape {}", spec.name, spec.shape.text(),
                                 device.id().text(), stored->tensor.shape().text()));
  }
  return stored;
}

InputWorkers ParameterServerExtended::input_workers() {
  InputWorkers workers = StoredExtended::input_workers();
  if (!has_servers_) return workers;
  workers.num_workers = 0;
  for (const WorkerSpec& spec : worker().cluster()) {
    if (spec.job == "ps" || spec.job == "evaluator") continue;
    const bool is_before =
        spec.job == "chief" ? worker().job() != "chief" : worker().job() != "chief" && spec.task < worker().task();
    if (is_before) ++workers.pipeline_id;
    ++workers.num_workers;
  }
  return workers;
}

ParameterServerStrategy::ParameterServerStrategy(Worker& worker, std::vector<Device*> devices,
                                                 ParameterServerOptions options)
    : Strategy("parameter_server", std::make_unique<ParameterServerExtended>(
                                       worker, or_all_of(worker, std::move(devices)), std::move(options))) {}

ShardedVariable ParameterServerStrategy::create_sharded_variable(const VariableSpec& spec) {
  const auto& extended = static_cast<const ParameterServerExtended&>(this->extended());
  return make_sharded_variable(*this, spec, extended.partitioner());
}

Staleness ParameterServerStrategy::staleness() const {
  return static_cast<const StoredExtended&>(extended()).staleness();
}

}  // namespace tandem
