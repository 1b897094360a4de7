#include "strategies/cluster/slurm_resolver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "strategies/base/errors.h"
#include "strategies/cluster/slurm_lists.h"
#include "strategies/cluster/text.h"

namespace tandem {
namespace {

std::string slurm_variable(const Environment& variables, const char* name) {
  const std::optional<std::string> value = variables.get(name);
  if (!value) throw RuntimeError(fmt::format("{} is not set: not inside a Slurm step?", name));
  return *value;
}

int slurm_number(const Environment& variables, const char* name) {
  const std::string text = slurm_variable(variables, name);
  const std::optional<int> number = whole_number(text);
  if (!number) throw ValueError(fmt::format("{} is '{}', must be a whole number", name, text));
  return *number;
}

std::map<std::string, int> tasks_by_host(const SlurmOptions& options, const Environment& variables) {
  if (const auto* given = std::get_if<std::map<std::string, int>>(&options.tasks_per_node)) return *given;
  const std::vector<std::string> hosts = expand_hostlist(slurm_variable(variables, "SLURM_STEP_NODELIST"));
  std::vector<int> counts;
  if (const int* each = std::get_if<int>(&options.tasks_per_node)) {
    counts.assign(hosts.size(), *each);
  } else {
    counts = expand_tasks_per_node(slurm_variable(variables, "SLURM_STEP_TASKS_PER_NODE"));
  }
  std::map<std::string, int> tasks;
  for (std::size_t i = 0; i < std::min(hosts.size(), counts.size()); ++i) tasks[hosts[i]] = counts[i];
  return tasks;
}

int visible_gpus(const Environment& variables) {
  const std::string list = variables.get("CUDA_VISIBLE_DEVICES").value_or("");
  return list.empty() ? 0 : static_cast<int>(split_text(list, ',').size());
}

int total(const std::map<std::string, int>& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0,
                         [](int sum, const auto& entry) { return sum + entry.second; });
}

int largest(const std::map<std::string, int>& counts) {
  int most = 0;
  for (const auto& [name, count] : counts) most = std::max(most, count);
  return most;
}

}  // namespace

// The step's tasks in order, before they are dealt to jobs.
struct SlurmResolver::Layout {
  std::map<std::string, int> jobs{};
  std::vector<std::string> addresses{};
  std::vector<std::string> gpus{};  // of each task, as in CUDA_VISIBLE_DEVICES

  void add_host(const std::string& host, int tasks, int port_base, int gpus_per_task) {
    for (int i = 0; i < tasks; ++i) {
      addresses.push_back(fmt::format("{}:{}", host, port_base + i));
      std::vector<int> own(static_cast<std::size_t>(gpus_per_task));
      std::iota(own.begin(), own.end(), i * gpus_per_task);
      gpus.push_back(fmt::format("{}", fmt::join(own, ",")));
    }
  }
};

SlurmResolver::SlurmResolver(const SlurmOptions& options, Environment& variables)
    : ClusterResolver({.rpc_layer = options.rpc_layer}) {
  const int rank = slurm_number(variables, "SLURM_PROCID");
  Layout layout{.jobs = options.jobs};
  if (layout.jobs.empty()) layout.jobs["worker"] = slurm_number(variables, "SLURM_STEP_NUM_TASKS");
  const std::map<std::string, int> hosts = tasks_by_host(options, variables);
  const int gpus_per_node = options.gpus_per_node ? *options.gpus_per_node : visible_gpus(variables);
  const int fullest = largest(hosts);
  gpus_per_task_ = options.gpus_per_task.value_or(gpus_per_node / std::max(1, fullest));
  if (fullest * gpus_per_task_ > gpus_per_node) {
    throw RuntimeError(fmt::format("{} tasks of {} GPUs on one node need more GPUs than the {} it has", fullest,
                                   gpus_per_task_, gpus_per_node));
  }
  if (total(layout.jobs) != total(hosts)) {
    throw RuntimeError(
        fmt::format("the jobs have {} tasks, but the Slurm step has {}", total(layout.jobs), total(hosts)));
  }
  for (const auto& [host, tasks] : hosts) layout.add_host(host, tasks, options.port_base, gpus_per_task_);
  allocate(layout, rank);
  if (options.auto_set_gpu) variables.set("CUDA_VISIBLE_DEVICES", layout.gpus.at(static_cast<std::size_t>(rank)));
}

void SlurmResolver::allocate(const Layout& layout, int rank) {
  if (rank < 0 || rank >= static_cast<int>(layout.addresses.size())) {
    throw RuntimeError(fmt::format("SLURM_PROCID is {}, but the step has {} tasks", rank, layout.addresses.size()));
  }
  std::map<std::string, JobTasks> jobs;
  int begin = 0;
  for (const auto& [job, tasks] : layout.jobs) {
    const auto first = layout.addresses.begin() + begin;
    jobs.emplace(job, std::vector<std::string>(first, first + tasks));
    if (begin <= rank && rank < begin + tasks) {
      set_task_type(job);
      set_task_id(rank - begin);
    }
    begin += tasks;
  }
  cluster_ = ClusterSpec(std::move(jobs));
}

std::string SlurmResolver::find_master(const TaskQuery& query) const {
  const auto type = query.task_type ? query.task_type : task_type();
  const auto id = query.task_id ? query.task_id : task_id();
  if (!type || !id) return "";
  const std::string asked = query.rpc_layer.value_or("");
  return format_master_url(cluster_.task_address(*type, *id), asked.empty() ? rpc_layer().value_or("") : asked);
}

}  // namespace tandem
