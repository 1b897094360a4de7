#include "strategies/cluster/run_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "strategies/base/errors.h"
#include "strategies/cluster/simple_resolver.h"

namespace tandem {
namespace {

constexpr std::string_view kEvaluator = "evaluator";

std::set<std::string> without_evaluators(std::set<std::string> tasks) {
  std::erase_if(tasks, [](const std::string& task) { return task.starts_with(kEvaluator); });
  return tasks;
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
  for (const std::string job : {"chief", "worker", "ps"}) {
    if (!cluster.has_job(job)) continue;
    for (const int task : cluster.task_indices(job)) add(job, task, job == "ps" ? 0 : devices);
  }
  for (const std::string& job : cluster.jobs()) {
    if (job == "chief" || job == "worker" || job == "ps" || job == kEvaluator) continue;
    throw ValueError(fmt::format("job '{}' of the cluster (known: chief, worker, ps, evaluator)", job));
  }
  if (workers.empty()) add("worker", 0, devices);
  return workers;
}

void check_cluster_of_run(const ClusterResolver& resolver, const Worker& worker) {
  const std::string job = resolver.task_type().value_or("");
  check_cluster_of_run(resolver.cluster_spec(), job, resolver.task_id(), worker, "the cluster resolver");
}

void check_cluster_of_run(const ClusterSpec& cluster, const std::string& job, std::optional<int> task,
                          const Worker& worker, std::string_view source) {
  if (!cluster) return;
  const std::set<std::string> described = without_evaluators(tasks_of(cluster));
  const std::set<std::string> found = without_evaluators(tasks_of(worker.cluster()));
  if (described != found) {
    throw ValueError(fmt::format("{} describes the tasks {}, and the run has {}", source, fmt::join(described, ", "),
                                 fmt::join(found, ", ")));
  }
  if (job.empty()) return;
  const std::string told = task_text(job, task.value_or(worker.task()));
  const std::string here = task_text(worker.job(), worker.task());
  if (told == here) return;
  throw ValueError(fmt::format("{} says that this is {}, and the run has made it {}", source, told, here));
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
