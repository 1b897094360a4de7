#include "strategies/cluster/union_resolver.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

bool is_set(const std::optional<std::string>& text) {
  return text && !text->empty();
}

JobTasks merged(const std::string& job, const std::vector<JobTasks>& parts) {
  const bool is_list = std::all_of(parts.begin(), parts.end(), [](const JobTasks& tasks) { return tasks.is_dense(); });
  std::map<int, std::string> by_index;
  for (const JobTasks& tasks : parts) {
    for (const auto& [index, address] : tasks.by_index()) {
      const int key = is_list ? static_cast<int>(by_index.size()) : index;
      if (!by_index.emplace(key, address).second) {
        throw KeyError(fmt::format("task {} of job '{}' is in two of the clusters to merge", key, job));
      }
    }
  }
  return by_index;
}

}  // namespace

UnionResolver::UnionResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers, TaskQuery overrides)
    : ClusterResolver(std::move(overrides)), resolvers_(std::move(resolvers)) {
  if (resolvers_.empty()) throw ValueError("a union needs at least one cluster resolver");
  for (const auto& resolver : resolvers_) {
    if (!resolver) throw TypeError("a union takes cluster resolvers, one of those given is null");
  }
}

ClusterSpec UnionResolver::cluster_spec() const {
  std::map<std::string, std::vector<JobTasks>> parts;
  for (const auto& resolver : resolvers_) {
    const ClusterSpec cluster = resolver->cluster_spec();
    for (const auto& [job, tasks] : cluster.by_job()) parts[job].push_back(tasks);
  }
  std::map<std::string, JobTasks> jobs;
  for (const auto& [job, tasks] : parts) jobs.emplace(job, merged(job, tasks));
  return ClusterSpec(std::move(jobs));
}

std::optional<std::string> UnionResolver::task_type() const {
  return is_set(overrides().task_type) ? overrides().task_type : first().task_type();
}

std::optional<int> UnionResolver::task_id() const {
  return overrides().task_id.value_or(0) != 0 ? overrides().task_id : first().task_id();
}

std::optional<std::string> UnionResolver::rpc_layer() const {
  return is_set(overrides().rpc_layer) ? overrides().rpc_layer : first().rpc_layer();
}

// The address of a named task gets only an RPC layer that was given for the union; the first resolver's belongs to its
// own cluster.
std::string UnionResolver::find_master(const TaskQuery& query) const {
  if (!query.task_type || !query.task_id) return first().master({}, {}, query.rpc_layer);
  const auto& layer = is_set(query.rpc_layer) ? query.rpc_layer : overrides().rpc_layer;
  return format_master_url(cluster_spec().task_address(*query.task_type, *query.task_id), layer.value_or(""));
}

AcceleratorCounts UnionResolver::count_accelerators(const TaskQuery& query) const {
  return first().num_accelerators(query.task_type, query.task_id);
}

}  // namespace tandem
