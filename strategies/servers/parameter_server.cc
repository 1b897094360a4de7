#include "strategies/servers/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/input/input_workers.h"
#include "strategies/strategy/context.h"

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
  check_chiefs_of_run(worker);
  std::vector<Device*> servers = server_devices(worker);
  return servers.empty() ? local_parameter_device(worker, compute) : servers;
}

bool is_first_worker(const Worker& worker) {
  const auto cluster = worker.cluster();
  const bool has_chief =
      std::any_of(cluster.begin(), cluster.end(), [](const auto& spec) { return spec.job == "chief"; });
  return worker.job() == "chief" || (!has_chief && worker.task() == 0);
}

PlacementStrategy placement_over(VariablePlacement placement, int tasks) {
  switch (placement) {
    case VariablePlacement::round_robin:
      return RoundRobinPlacement(tasks);
    case VariablePlacement::by_size:
      return GreedyPlacement(tasks);
    case VariablePlacement::by_hash:
      return HashPlacement(tasks);
  }
  TANDEM_UNREACHABLE("a placement of variables that no case handles");
}

// Orders the input pipelines: the chief's is the first, then the workers' by task.
bool comes_before(const WorkerSpec& spec, const Worker& worker) {
  if (worker.job() == "chief") return false;
  return spec.job == "chief" || spec.task < worker.task();
}

}  // namespace

// The names of a worker's variables, made unique like TensorFlow's Graph.unique_name: letter case does not distinguish
// names, and a suffix that is taken is skipped.
class ParameterServerExtended::VariableNames {
 public:
  explicit VariableNames(Worker& worker) : monitor_(worker.tasks().make_monitor()) {}

  std::string unique(const std::string& name) {
    const std::lock_guard lock(*monitor_);
    int suffix = uses_[lower_case(name)]++;
    if (suffix == 0) return name;
    std::string candidate;
    do {
      candidate = fmt::format("{}_{}", name, suffix++);
    } while (!uses_.emplace(lower_case(candidate), 1).second);
    return candidate;
  }

 private:
  static std::string lower_case(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }

  std::unique_ptr<Monitor> monitor_;  // guards uses_
  std::map<std::string, int> uses_;
};

ParameterServerExtended::ParameterServerExtended(Worker& worker, const std::vector<Device*>& compute_devices,
                                                 ParameterServerOptions options, std::vector<DeviceId> in_sync)
    : StoredExtended(worker, compute_devices, servers_or_local(worker, compute_devices), std::move(in_sync)),
      options_(std::move(options)),
      next_task_(placement_over(options_.placement, static_cast<int>(parameter_devices().size()))),
      has_servers_(!server_devices(worker).empty()),
      is_chief_(is_first_worker(worker)) {
  options_.cluster_resolver = checked_resolver(worker, options_.cluster_resolver);
  const auto make_names = [&worker] { return std::make_shared<VariableNames>(worker); };
  // Stored variables, and therefore their names, live to the end of the run, whichever strategy object made them.
  names_ = has_servers_ ? std::static_pointer_cast<VariableNames>(worker.shared().kept("variable names", make_names))
                        : make_names();
}

ParameterServerExtended::~ParameterServerExtended() = default;

std::shared_ptr<Variable> ParameterServerExtended::make_variable(const VariableSpec& spec) {
  VariableSpec unique = spec;
  unique.name = names_->unique(spec.name);
  return StoredExtended::make_variable(unique);
}

// Each worker counts by itself; workers that create the same variables in the same order agree.
Device& ParameterServerExtended::place(const VariableSpec& spec) {
  const int task = next_task_({.name = spec.name, .is_variable = true, .shape = spec.shape, .dtype = spec.dtype});
  return *parameter_devices().at(static_cast<std::size_t>(task));
}

std::shared_ptr<StoredTensor> ParameterServerExtended::store(const VariableSpec& spec, Device& device) {
  if (!has_servers_) return new_store(spec, device);
  auto stored = std::make_shared<StoredTensor>();
  stored->shared =
      worker().shared().tensor(fmt::format("variable {}", spec.name), [&] { return new_tensor(spec, device); });
  const Tensor& found = stored->tensor();
  if (found.shape() != spec.shape || found.dtype() != spec.dtype || &found.device() != &device) {
    const auto text = [](DType dtype, const Shape& shape, const Device& on) {
      return fmt::format("{} {} on {}", name_of(dtype), shape.text(), on.id().text());
    };
    throw ValueError(fmt::format(
        "variable '{}' is {} here and {} on another worker: all workers create the same variables in the same order",
        spec.name, text(spec.dtype, spec.shape, device), text(found.dtype(), found.shape(), found.device())));
  }
  return stored;
}

InputWorkers ParameterServerExtended::input_workers() {
  InputWorkers workers = StoredExtended::input_workers();
  if (!has_servers_) return workers;
  workers.num_workers = workers.pipeline_id = 0;
  for (const WorkerSpec& spec : worker().cluster()) {
    if (spec.job == "ps" || spec.job == "evaluator") continue;
    ++workers.num_workers;
    if (comes_before(spec, worker())) ++workers.pipeline_id;
  }
  return workers;
}

ParameterServerStrategy::ParameterServerStrategy(ParameterServerOptions options)
    : ParameterServerStrategy(worker_of_task(), {}, std::move(options)) {}

ParameterServerStrategy::ParameterServerStrategy(Worker& worker, std::vector<Device*> devices,
                                                 ParameterServerOptions options)
    : Strategy("parameter_server",
               make_parameter_servers(worker, or_all_of(worker, std::move(devices)), std::move(options))) {}

ShardedVariable ParameterServerStrategy::create_sharded_variable(const VariableSpec& spec) {
  const auto& extended = static_cast<const ParameterServerExtended&>(this->extended());
  return make_sharded_variable(*this, spec, extended.partitioner());
}

Staleness ParameterServerStrategy::staleness() const {
  return static_cast<const StoredExtended&>(extended()).staleness();
}

}  // namespace tandem
