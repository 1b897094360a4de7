#include "strategies/cluster/run_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <utility>

#include "engine/engine.h"
#include "engine/launched_job.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/cluster_util.h"
#include "strategies/cluster/simple_resolver.h"
#include "strategies/cluster/tf_config_resolver.h"

namespace tandem {
namespace {

constexpr std::string_view kEvaluator = "evaluator", kTfConfig = "TF_CONFIG";

std::set<std::string> without_evaluators(std::set<std::string> tasks) {
  std::erase_if(tasks, [](const std::string& task) { return task.starts_with(kEvaluator); });
  return tasks;
}

std::string hint_for(const std::string& job) {
  if (job == "master") return "; TensorFlow 2 calls the master 'chief'";
  const std::size_t suffix = job.rfind("_hosts");
  return suffix == std::string::npos ? "" : fmt::format("; did you mean '{}'?", job.substr(0, suffix));
}

bool is_any_port(const std::string& address) {
  return address.ends_with(":0");
}

// What no run can have, whoever describes it.
void check_cluster(const ClusterSpec& cluster) {
  std::map<std::string, std::string> tasks;  // by address
  for (const auto& [job, of_job] : cluster.by_job()) {
    if (job != "chief" && job != "worker" && job != "ps" && job != kEvaluator) {
      throw ValueError(
          fmt::format("unknown job '{}' of the cluster (known: chief, worker, ps, evaluator){}", job, hint_for(job)));
    }
    for (const auto& [task, address] : of_job.by_index()) {
      const auto [found, is_new] = tasks.emplace(address, task_text(job, task));
      if (is_new || is_any_port(address)) continue;
      throw ValueError(fmt::format("{} and {} have the same address {}, must have one each", found->second,
                                   task_text(job, task), address));
    }
  }
  check_single_tasks(cluster);
}

// Returns the task that the resolver says this is; nothing where it leaves that to the run. `who` names it.
std::optional<std::string> task_of(const ClusterResolver& resolver, const ClusterSpec& cluster, std::string_view who) {
  const std::string job = resolver.task_type().value_or("");
  const std::optional<int> task = resolver.task_id();
  if (job.empty()) return std::nullopt;
  if (!task) throw ValueError(fmt::format("{} says that this is a {}, and not its index", who, job));
  const std::string text = task_text(job, *task);
  if (job == kEvaluator || tasks_of(cluster).contains(text)) return text;
  throw ValueError(fmt::format("{} says that this is {}, and describes only the tasks {}", who, text,
                               fmt::join(tasks_of(cluster), ", ")));
}

// A process that trains alone may call itself localhost.
bool is_alone(const Worker& worker, const std::set<std::string>& described) {
  return described.size() == 1 && worker.cluster().size() == 1 && worker.job() == "localhost";
}

void check_against_run(const ClusterResolver& resolver, const Worker& worker, std::string_view who) {
  const ClusterSpec cluster = resolver.cluster_spec();
  if (!cluster) return;
  check_cluster(cluster);
  const std::set<std::string> described = without_evaluators(tasks_of(cluster));
  const std::set<std::string> found = without_evaluators(tasks_of(worker.cluster()));
  if (is_alone(worker, described)) return;
  if (described != found) {
    throw ValueError(fmt::format("{} describes the tasks {}, and the run has {}{}", who, fmt::join(described, ", "),
                                 fmt::join(found, ", "),
                                 who == kTfConfig ? "; give the run those tasks, or unset TF_CONFIG" : ""));
  }
  const std::optional<std::string> task = task_of(resolver, cluster, who);
  const std::string here = task_text(worker.job(), worker.task());
  if (!task || *task == here) return;
  throw ValueError(fmt::format("{} says that this is {}, and the run has made it {}{}", who, *task, here,
                               task->starts_with(kEvaluator)
                                   ? "; an evaluator is no task of the cluster, and trains with no strategy of it"
                                   : ""));
}

}  // namespace

std::vector<WorkerSpec> workers_of(const ClusterSpec& cluster, DeviceType type, int devices) {
  std::vector<WorkerSpec> workers;
  const auto add = [&](const std::string& job, int task, int device_count) {
    workers.push_back({.job = job,
                       .task = task,
                       .topology_worker = static_cast<int>(workers.size()),
                       .device_type = type,
                       .device_count = device_count});
  };
  check_cluster(cluster);
  for (const std::string job : {"chief", "worker", "ps"}) {
    if (!cluster.has_job(job)) continue;
    for (const int task : cluster.task_indices(job)) add(job, task, job == "ps" ? 0 : devices);
  }
  if (workers.empty()) add("worker", 0, devices);
  return workers;
}

void check_evaluator_is_alone() {
  const Rank rank = rank_of_process();
  if (rank.count == 1 || !reason_to_refuse_jobs().empty()) return;
  throw RuntimeError(fmt::format(
      "an evaluator was launched as rank {} of {}, whose other ranks would wait for it: it is no task of the "
      "cluster; start it by itself, without mpirun and srun, and one rank less",
      rank.index, rank.count));
}

void start_task_of(const ClusterResolver& resolver) {
  const ClusterSpec cluster = resolver.cluster_spec();
  if (cluster && resolver.task_type() == kEvaluator) check_evaluator_is_alone();
  if (!cluster || rank_of_process().count > 1 || resolver.task_type() == kEvaluator) return;
  const std::vector<WorkerSpec> workers = workers_of(cluster, DeviceType::cpu, 1);
  if (workers.size() == 1) return;
  const std::optional<std::string> mine = task_of(resolver, cluster, "the cluster resolver");
  if (!mine) {
    throw ValueError(fmt::format("the cluster has {} tasks, and nothing says which of them this process is: {}",
                                 workers.size(), R"("task": {"type": ..., "index": ...})"));
  }
  TaskList tasks;
  for (const WorkerSpec& spec : workers) {
    const std::string name = task_text(spec.job, spec.task);
    if (name == *mine) tasks.index = static_cast<int>(tasks.names.size());
    tasks.names.push_back(name);
    tasks.addresses.push_back(cluster.task_address(spec.job, spec.task));
  }
  set_tasks(std::move(tasks));
}

void check_cluster_of_run(const ClusterResolver& resolver, const Worker& worker) {
  check_against_run(resolver, worker, "the cluster resolver");
}

void check_cluster_of_run(const ClusterSpec& cluster, const std::string& job, std::optional<int> task,
                          const Worker& worker, std::string_view source) {
  TaskQuery query;
  if (!job.empty()) query = {.task_type = job, .task_id = task.value_or(worker.task())};
  check_against_run(SimpleResolver(cluster, {.task = std::move(query)}), worker, source);
}

// A run inside one process has one TF_CONFIG for all of its workers, which can name the task of only one of them.
std::shared_ptr<const ClusterResolver> checked_resolver(const Worker& worker,
                                                        std::shared_ptr<const ClusterResolver> given) {
  if (given != nullptr) {
    check_cluster_of_run(*given, worker);
    return given;
  }
  if (!process_environment().get(std::string(kTfConfig))) return resolver_of_run(worker);
  const TfConfigResolver of_process;
  if (!of_process.cluster_spec()) return resolver_of_run(worker);
  if (of_process.task_type() == kEvaluator) {
    check_evaluator_is_alone();
    return resolver_of_run(worker);
  }
  const bool is_one_task = worker.cluster().size() == 1 || !worker.capabilities().shared_objects;
  TaskQuery task;
  if (!is_one_task) task = {.task_type = worker.job(), .task_id = worker.task()};
  const auto resolver = std::make_shared<TfConfigResolver>(std::move(task));
  check_against_run(*resolver, worker, kTfConfig);
  return resolver;
}

void check_chiefs_of_run(const Worker& worker) {
  std::vector<std::string> chiefs;
  for (const WorkerSpec& spec : worker.cluster()) {
    if (spec.job == "chief") chiefs.push_back(task_text(spec.job, spec.task));
  }
  if (chiefs.size() <= 1) return;
  throw ValueError(fmt::format("there must be at most one 'chief' task, the run has {}", fmt::join(chiefs, " and ")));
}

std::shared_ptr<const ClusterResolver> resolver_of_run(const Worker& worker) {
  std::map<std::string, std::map<int, std::string>> addresses;
  for (const WorkerSpec& spec : worker.cluster()) {
    addresses[spec.job][spec.task] = fmt::format("{}{}", spec.job, spec.task);
  }
  std::map<std::string, JobTasks> jobs;
  for (auto& [job, tasks] : addresses) jobs.emplace(job, JobTasks(std::move(tasks)));
  AcceleratorCounts accelerators;
  const int count = static_cast<int>(worker.devices().size());
  if (count > 0 && worker.devices().front()->id().type == DeviceType::gpu) accelerators["GPU"] = count;
  return std::make_shared<SimpleResolver>(
      ClusterSpec(std::move(jobs)), SimpleResolverOptions{.task = {.task_type = worker.job(), .task_id = worker.task()},
                                                          .num_accelerators = accelerators});
}

std::string task_text(const std::string& job, int task) {
  return fmt::format("{} {}", job, task);
}

std::set<std::string> tasks_of(const ClusterSpec& cluster) {
  std::set<std::string> tasks;
  for (const auto& [job, of_job] : cluster.by_job()) {
    for (const auto& [task, address] : of_job.by_index()) tasks.insert(task_text(job, task));
  }
  return tasks;
}

std::set<std::string> tasks_of(std::span<const WorkerSpec> run) {
  std::set<std::string> tasks;
  for (const WorkerSpec& spec : run) tasks.insert(task_text(spec.job, spec.task));
  return tasks;
}

}  // namespace tandem
