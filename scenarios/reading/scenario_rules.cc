#include "scenarios/reading/scenario_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/job/job.h"
#include "scenarios/job/parallel_settings.h"
#include "scenarios/reading/evaluation_reader.h"
#include "scenarios/scenario/scenario.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

// Returns the first of these values that a setting gave, or else the first.
const char* blamed(const Scenario& scenario, const std::vector<const char*>& paths) {
  const auto is_set = [&](const char* path) {
    const YamlNode* node = scenario.document ? node_at(scenario.document->root(), path) : nullptr;
    return node != nullptr && node->line < 0;
  };
  const auto set = std::ranges::find_if(paths, is_set);
  return set == paths.end() ? paths.front() : *set;
}

class Rules {
 public:
  Rules(const Scenario& scenario, Diagnostics& problems) : scenario_(scenario), problems_(problems) {}

  void check() {
    check_devices();
    check_workers();
    check_operations();
    check_steps();
    check_gather();
    check_experts();
    if (problems_.empty() && strategy_ != nullptr) check_division();
    if (problems_.empty()) check_evaluation();
  }

 private:
  void report(const std::vector<const char*>& paths, std::string message) {
    problems_.add(scenario_.problem_at(blamed(scenario_, paths), std::move(message)));
  }

  void check_gather() {
    const auto* layers = std::get_if<LayersSettings>(&scenario_.workload.kind);
    const MeshSettings& mesh = scenario_.strategy.mesh;
    if (layers == nullptr || !layers->gathers_quantised || mesh.distributed_optimizer || mesh.shard_parameters) return;
    report({"workload.precision.gather"},
           "is for parameters that are gathered: distributed_optimizer or shard_parameters");
  }

  // A mesh may have no devices that divide experts, as a point of a sweep.
  void check_experts() {
    const auto* layers = std::get_if<LayersSettings>(&scenario_.workload.kind);
    const bool may_divide = strategy_ == nullptr || (strategy_->division && strategy_->division->axis == nullptr);
    if (layers == nullptr || may_divide) return;
    const ExpertSettings& experts = layers->experts;
    const bool is_given = experts.dispatch != Dispatch::all_to_all || !experts.popularity.empty();
    if (is_given) report({"workload.experts"}, "is for strategies that divide experts among devices, such as mesh");
  }

  void check_devices() {
    const DeviceSettings& devices = scenario_.devices;
    if (strategy_ != nullptr && strategy_->one_device && devices.per_worker != 1) {
      report({"devices.per_worker"},
             fmt::format("strategy '{}' uses 1 device, found {}", strategy_->name, devices.per_worker));
    }
    if (auto problem = device_count_problem(scenario_)) {
      report({"devices", "devices.per_worker", "devices.workers"}, std::move(*problem));
    }
  }

  // All workers share the machine of a topology that has only one.
  void check_workers() {
    const int workers = scenario_.devices.workers.value_or(1);
    const int machines = scenario_.topology ? scenario_.topology->worker_count() : 1;
    if (workers > 1 && strategy_ != nullptr && !strategy_->several_workers) {
      report({"devices.workers"}, fmt::format("strategy '{}' uses 1 worker, found {}", strategy_->name, workers));
    } else if (machines > 1 && workers > machines) {
      report({"devices.workers"},
             fmt::format("more than the machines of the topology: {}, found {}", machines, workers));
    }
  }

  // Strategies that divide the model have no such operations at all.
  void check_operations() {
    const std::string& wanted = scenario_.strategy.cross_device_ops;
    if (strategy_ == nullptr || strategy_->division || wanted.empty() || wanted == "auto") return;
    const std::vector<std::string> known = cross_device_ops_names();
    if (std::ranges::count(known, wanted) == 0 || std::ranges::count(strategy_->cross_device_ops, wanted) > 0) return;
    report({"strategy.cross_device_ops"},
           fmt::format("strategy '{}' has its own; '{}' cannot be chosen", strategy_->name, wanted));
  }

  void check_steps() {
    if (scenario_.steps > scenario_.warmup_steps) return;
    report({"warmup_steps", "steps"}, fmt::format("no step remains to be measured: {} of {} are warm-up",
                                                  scenario_.warmup_steps, scenario_.steps));
  }

  void check_evaluation() {
    const auto problem = evaluation_problem(scenario_);
    if (problem) report({problem->path.c_str()}, problem->message);
  }

  void check_division() {
    const auto problem = parallel_problem(scenario_);
    if (!problem) return;
    const bool is_of_count = problem->path == "strategy" || problem->path == "devices";
    std::vector<const char*> paths{problem->path.c_str()};
    if (is_of_count) paths.insert(paths.end(), {"devices.per_worker", "devices.workers"});
    report(paths, problem->message);
  }

  const Scenario& scenario_;
  const StrategyInfo* strategy_ = find_strategy(scenario_.strategy.name);
  Diagnostics& problems_;
};

}  // namespace

void check_rules(const Scenario& scenario, Diagnostics& problems) {
  Rules(scenario, problems).check();
}

}  // namespace tandem
