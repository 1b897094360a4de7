#include "scenarios/job/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "reports/run/report.h"
#include "scenarios/job/job.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/tf_config_resolver.h"

namespace tandem {
namespace {

using TaskCounts = std::map<std::string, int>;  // by job

// An evaluator takes no part in training.
TaskCounts counts_of(const std::vector<WorkerSpec>& tasks) {
  TaskCounts counts;
  for (const WorkerSpec& task : tasks) {
    if (task.job != kEvaluatorJob) ++counts[task.job];
  }
  return counts;
}

TaskCounts counts_of(const ClusterSpec& cluster) {
  TaskCounts counts;
  for (const auto& [job, tasks] : cluster.by_job()) {
    if (job != kEvaluatorJob) counts[job] = static_cast<int>(tasks.by_index().size());
  }
  return counts;
}

std::string text_of(const TaskCounts& counts) {
  std::vector<std::string> jobs;
  for (const auto& [name, count] : counts) jobs.push_back(fmt::format("{} x {}", count, name));
  return fmt::format("{}", fmt::join(jobs, " and "));
}

int sum_of(const TaskCounts& counts) {
  int sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

struct Described {
  TaskCounts counts{};
  std::string addresses = "none";  // of the tasks
  std::optional<std::string> job{};
  std::optional<int> task{};

  bool is_evaluator() const { return job == kEvaluatorJob; }
  std::string text() const { return fmt::format("{} {}", job.value_or("some task"), task.value_or(0)); }
};

std::string addresses_of(const ClusterSpec& cluster) {
  std::vector<std::string> jobs;
  for (const auto& [job, tasks] : cluster.by_job()) {
    if (job == kEvaluatorJob) continue;
    std::vector<std::string> addresses;
    for (const auto& [index, address] : tasks.by_index()) addresses.push_back(address);
    jobs.push_back(fmt::format("{} [{}]", job, fmt::join(addresses, ", ")));
  }
  return fmt::format("{}", fmt::join(jobs, " and "));
}

// A message of TF_CONFIG's reader begins with its name.
std::string about_tf_config(const std::string& text) {
  return text.starts_with("TF_CONFIG") ? text : "TF_CONFIG: " + text;
}

// Describes no tasks where there is no TF_CONFIG, or no cluster in it.
Described described_by(const Environment& variables) {
  if (!variables.get("TF_CONFIG")) return {};
  try {
    const TfConfigResolver resolver({}, variables);
    const ClusterSpec cluster = resolver.cluster_spec();
    if (cluster.by_job().empty()) return {};
    return {counts_of(cluster), addresses_of(cluster), resolver.task_type(), resolver.task_id()};
  } catch (const Error& error) {
    throw UnavailableError(about_tf_config(error.what()));
  }
}

void check_lone_process(const Described& described) {
  if (described.is_evaluator() || sum_of(described.counts) <= 1) return;
  throw UnavailableError(
      fmt::format("TF_CONFIG says that this process is {} of a cluster of {}; it was launched alone, and would do the "
                  "work of all tasks; launch all of them with mpirun or srun, or this process without TF_CONFIG",
                  described.text(), text_of(described.counts)));
}

void refuse_evaluator(const Described& described, const Rank& rank) {
  if (!described.is_evaluator()) return;
  throw UnavailableError(fmt::format(
      "TF_CONFIG says that this process is {}, and the launch has made it rank {} of {}; an evaluator is no "
      "task of the cluster: start it by itself, without mpirun and srun, and launch a rank for each of the "
      "other tasks ({})",
      described.text(), rank.index, rank.count, text_of(described.counts)));
}

// Whether the processes of this job were started one by one.
bool are_tasks_of_tf_config() {
  return rank_of_process().count == 1 && !tasks_of_process().names.empty();
}

}  // namespace

void take_task_of_tf_config() {
  if (!process_environment().get("TF_CONFIG")) return;
  try {
    start_task_of(TfConfigResolver());
  } catch (const Error& error) {
    throw UnavailableError(about_tf_config(error.what()));
  }
}

LaunchedJob* join_launch(const Scenario& scenario) {
  const EngineInfo* engine = find_engine(scenario.engine.name);
  if (engine == nullptr) return nullptr;
  check_engine_of_launch(*engine);
  if (engine->join == nullptr) return nullptr;
  take_task_of_tf_config();
  LaunchedJob* const job = engine->join();
  if (job == nullptr) check_lone_process(described_by(process_environment()));
  return job;
}

std::vector<ScenarioSetting> settings_of_launch(const Scenario& scenario, const std::string& workers) {
  LaunchedJob* const job = join_launch(scenario);
  if (job == nullptr) return {};
  const int ranks = job->rank().count;
  const std::string name = fmt::format("a launch of {} ranks", ranks);
  std::vector<ScenarioSetting> settings;
  int servers = parameter_servers(scenario);
  if (are_tasks_of_tf_config()) {
    const TaskCounts counts = described_by(process_environment()).counts;
    settings.push_back({name, "devices.chief", counts.contains("chief") ? "true" : "false"});
    if (servers > 0 && counts.contains("ps")) {
      servers = counts.at("ps");
      settings.push_back({name, "devices.ps", std::to_string(servers)});
    }
  }
  const int others = servers + evaluators(scenario);
  if (ranks <= others) {
    throw InputError({scenario.problem_at(
        "devices", fmt::format("{} ranks were launched for {} parameter servers{} and at least one worker, each on a "
                               "rank of its own",
                               ranks, servers, evaluators(scenario) > 0 ? ", an evaluator" : ""))});
  }
  if (!workers.empty() && workers != std::to_string(ranks - others)) {
    throw UnavailableError(fmt::format(
        "--workers {} on {} ranks: there is one worker a rank{}{}; launch {}", workers, ranks,
        servers == 0 ? "" : fmt::format(", besides {} parameter servers", servers),
        evaluators(scenario) > 0 ? ", besides the evaluator" : "", scenario.devices.workers.value_or(1) + others));
  }
  settings.push_back({name, "devices.workers", std::to_string(ranks - others)});
  return settings;
}

void check_engine_of_launch(const EngineInfo& engine) {
  if (engine.join != nullptr || joined_job() != nullptr || !reason_to_refuse_jobs().empty()) return;
  const Rank rank = rank_of_process();
  if (rank.count == 1) return;
  throw UnavailableError(fmt::format(
      "rank {} on {}: {} processes were launched together, and engine '{}' would run everything in each of them; use "
      "--engine mpi, or launch one process; where each is to run by itself, remove {} from its environment",
      rank.index, host_name(), rank.count, engine.name, count_variable_of_process()));
}

void state_to_job(const Scenario& scenario) {
  if (LaunchedJob* job = joined_job()) {
    job->state(tf_config_of_all(process_environment()));
    job->state({{"version of Tandem", std::string(version())},
                {"scenario", fmt::format("'{}' ({})", scenario.name, scenario.hash)},
                {"strategy", scenario.strategy.name},
                {"number of steps", std::to_string(scenario.steps)}});
  }
}

void check_tf_config(const std::vector<WorkerSpec>& tasks, const Rank& rank, const Environment& variables) {
  const Described described = described_by(variables);
  if (rank.count == 1) return check_lone_process(described);
  if (tasks.size() != static_cast<std::size_t>(rank.count)) return refuse_evaluator(described, rank);  // and the engine
  const WorkerSpec& mine = tasks.at(static_cast<std::size_t>(rank.index));
  if (mine.job != kEvaluatorJob) refuse_evaluator(described, rank);
  if (described.counts.empty()) return;
  const std::string job = described.job.value_or(mine.job);
  const int task = described.task.value_or(mine.task);
  const TaskCounts counts = counts_of(tasks);
  if (described.counts == counts && job == mine.job && task == mine.task) return;
  if (are_tasks_of_tf_config()) {
    throw UnavailableError(fmt::format("TF_CONFIG describes a cluster of {}, and the scenario runs on {}",
                                       text_of(described.counts), text_of(counts)));
  }
  throw UnavailableError(fmt::format(
      "TF_CONFIG says that this process is {} {} of a cluster of {}; the launch has made it rank {} of {}, which is {} "
      "{} of a cluster of {}; start each rank with its own TF_CONFIG, or without one",
      job, task, text_of(described.counts), rank.index, rank.count, mine.job, mine.task, text_of(counts)));
}

void check_tf_config(const Rank& rank, const Environment& variables) {
  const Described described = described_by(variables);
  if (rank.count == 1) return check_lone_process(described);
  refuse_evaluator(described, rank);
  if (described.counts.empty() || sum_of(described.counts) == rank.count) return;
  throw UnavailableError(fmt::format("TF_CONFIG describes a cluster of {}, and {} ranks were launched",
                                     text_of(described.counts), rank.count));
}

std::map<std::string, std::string> tf_config_of_all(const Environment& variables) {
  return {{"cluster in its TF_CONFIG", described_by(variables).addresses}};
}

}  // namespace tandem
