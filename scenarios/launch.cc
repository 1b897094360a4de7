#include "scenarios/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>

#include "engine/engine_info.h"
#include "reports/report.h"
#include "scenarios/job.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/tf_config_resolver.h"

namespace tandem {
namespace {

using TaskCounts = std::map<std::string, int>;  // by job

TaskCounts counts_of(const std::vector<WorkerSpec>& tasks) {
  TaskCounts counts;
  for (const WorkerSpec& task : tasks) ++counts[task.job];
  return counts;
}

// An evaluator takes no part in training.
TaskCounts counts_of(const ClusterSpec& cluster) {
  TaskCounts counts;
  for (const auto& [job, tasks] : cluster.by_job()) {
    if (job != "evaluator") counts[job] = static_cast<int>(tasks.by_index().size());
  }
  return counts;
}

std::string text_of(const std::string& job, int task, const TaskCounts& counts) {
  std::vector<std::string> jobs;
  for (const auto& [name, count] : counts) jobs.push_back(fmt::format("{} x {}", count, name));
  return fmt::format("{} {} of a cluster of {}", job, task, fmt::join(jobs, " and "));
}

struct Described {
  TaskCounts counts;
  std::optional<std::string> job;
  std::optional<int> task;
};

Described described_by(const Environment& variables) {
  try {
    const TfConfigResolver resolver({}, variables);
    return {counts_of(resolver.cluster_spec()), resolver.task_type(), resolver.task_id()};
  } catch (const Error& error) {
    throw UnavailableError(fmt::format("TF_CONFIG: {}", error.what()));
  }
}

}  // namespace

void take_workers_of_launch(Scenario& scenario, const std::optional<int>& workers) {
  const EngineInfo* engine = find_engine(scenario.engine.name);
  LaunchedJob* const job = engine != nullptr && engine->join != nullptr ? engine->join() : nullptr;
  if (job == nullptr) return;
  const int ranks = job->rank().count;
  const int servers = parameter_servers(scenario);
  if (ranks <= servers) {
    throw InputError({scenario.problem_at(
        "devices", fmt::format("{} ranks were launched for {} parameter servers and at least one worker, each on a "
                               "rank of its own",
                               ranks, servers))});
  }
  if (workers && *workers != ranks - servers) {
    throw UnavailableError(
        fmt::format("--workers {} on {} ranks: there is one worker a rank{}; launch {}", *workers, ranks,
                    servers == 0 ? "" : fmt::format(", besides {} parameter servers", servers), *workers + servers));
  }
  scenario.devices.workers = ranks - servers;
  check_tf_config(tasks_of(scenario), job->rank(), process_environment());
}

void state_to_job(const Scenario& scenario) {
  if (LaunchedJob* job = joined_job()) {
    job->state({{"version of Tandem", std::string(version())},
                {"scenario", fmt::format("'{}' ({})", scenario.name, scenario.hash)},
                {"strategy", scenario.strategy.name},
                {"number of steps", std::to_string(scenario.steps)}});
  }
}

void check_tf_config(const std::vector<WorkerSpec>& tasks, const Rank& rank, const Environment& variables) {
  if (rank.count == 1 || !variables.get("TF_CONFIG")) return;
  const Described described = described_by(variables);
  if (described.counts.empty()) return;
  const WorkerSpec& mine = tasks.at(static_cast<std::size_t>(rank.index));
  const std::string job = described.job.value_or(mine.job);
  const int task = described.task.value_or(mine.task);
  if (described.counts == counts_of(tasks) && job == mine.job && task == mine.task) return;
  throw UnavailableError(fmt::format(
      "TF_CONFIG says that this process is {}; the launch has made it rank {} of {}, "
      "which is {}; start each rank with its own TF_CONFIG, or without one",
      text_of(job, task, described.counts), rank.index, rank.count, text_of(mine.job, mine.task, counts_of(tasks))));
}

}  // namespace tandem
