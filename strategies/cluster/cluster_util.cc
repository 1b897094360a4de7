#include "strategies/cluster/cluster_util.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

bool is_task_type(const std::string& type) {
  return type == "chief" || type == "worker" || type == "evaluator" || type == "ps";
}

int count_of(const ClusterSpec& cluster, const std::string& job) {
  return cluster.has_job(job) ? cluster.num_tasks(job) : 0;
}

// "a:1 and b:1".
std::string addresses_of(const ClusterSpec& cluster, const std::string& job) {
  std::vector<std::string> addresses;
  for (const auto& [task, address] : cluster.by_job().at(job).by_index()) addresses.push_back(address);
  return fmt::format("{}", fmt::join(addresses, " and "));
}

std::string first_task(const std::string& job) {
  return fmt::format("/job:{}/replica:0/task:0", job);
}

std::string chief_or_first_worker(const ClusterSpec& cluster) {
  if (cluster.has_job("chief")) return first_task("chief");
  if (cluster.has_job("worker")) return first_task("worker");
  throw AssertionError(fmt::format("{} has neither a chief nor a worker to lead it", cluster.text()));
}

}  // namespace

ClusterSpec normalize_cluster_spec(const ClusterSpec& cluster) {
  return cluster;
}

ClusterSpec normalize_cluster_spec(const ClusterDef& cluster) {
  return ClusterSpec(cluster);
}

ClusterSpec normalize_cluster_spec(std::string_view json) {
  const nlohmann::json cluster = nlohmann::json::parse(json, nullptr, false);
  if (cluster.is_null()) return {};
  if (!cluster.is_discarded() && !cluster.is_object()) {
    throw ValueError(fmt::format("a cluster must be a map from job to tasks, not {}", cluster.type_name()));
  }
  return ClusterSpec::from_json(json);
}

void validate_cluster_spec(const ClusterSpec& cluster, const std::string& task_type, int task_id) {
  constexpr std::string_view kKnown = "chief, worker, evaluator, ps";
  for (const std::string& job : cluster.jobs()) {
    if (!is_task_type(job))
      throw ValueError(fmt::format("disallowed job '{}' in the cluster (allowed: {})", job, kKnown));
  }
  if (!task_type.empty() && !is_task_type(task_type)) {
    throw ValueError(fmt::format("unrecognized task_type '{}' (valid: {})", task_type, kKnown));
  }
  if (!task_type.empty() && task_type != "evaluator" && !cluster.has_job(task_type)) {
    throw ValueError(fmt::format("task_type '{}' not found in {}", task_type, cluster.text()));
  }
  check_single_tasks(cluster);
  if (cluster.has_job(task_type) && task_id >= cluster.num_tasks(task_type)) {
    throw ValueError(fmt::format("the task_id {} exceeds the maximum id of {}, {}", task_id, task_type,
                                 cluster.num_tasks(task_type) - 1));
  }
}

void check_single_tasks(const ClusterSpec& cluster) {
  for (const char* single : {"chief", "evaluator"}) {
    if (const int count = count_of(cluster, single); count > 1) {
      throw ValueError(fmt::format("there must be at most one '{}' task, the cluster has {}: {}", single, count,
                                   addresses_of(cluster, single)));
    }
  }
}

void validate_parameter_server_cluster(const ClusterSpec& cluster, const std::string& task_type, int task_id) {
  validate_cluster_spec(cluster, task_type, task_id);
  for (const char* needed : {"worker", "ps"}) {
    if (count_of(cluster, needed) < 1) {
      throw ValueError(fmt::format("there must be at least one '{}' task in {}", needed, cluster.text()));
    }
  }
}

bool is_chief(const ClusterSpec& cluster, const std::string& task_type, int task_id) {
  validate_cluster_spec(cluster, task_type, task_id);
  if (task_type == "chief" || task_type == "evaluator") return true;
  return task_type == "worker" && task_id == 0 && !cluster.has_job("chief");
}

bool should_save_checkpoint(const ClusterSpec& cluster, const std::string& task_type, int task_id) {
  return is_chief(cluster, task_type, task_id);
}

int worker_count(const ClusterSpec& cluster, const std::string& task_type) {
  validate_cluster_spec(cluster, task_type, 0);
  if (task_type == "evaluator") {
    if (!cluster.has_job("evaluator")) throw KeyError(fmt::format("no job 'evaluator' in {}", cluster.text()));
    return cluster.num_tasks("evaluator");
  }
  if (task_type != "chief" && task_type != "worker") {
    throw ValueError(
        fmt::format("Unexpected task_type '{}': workers are counted for chief, worker, evaluator", task_type));
  }
  return count_of(cluster, "chief") + count_of(cluster, "worker");
}

int id_in_cluster(const ClusterSpec& cluster, const std::string& task_type, int task_id) {
  validate_cluster_spec(cluster, task_type, task_id);
  if (task_type == "chief") return 0;
  if (task_type == "worker") return task_id + count_of(cluster, "chief");
  if (task_type == "evaluator") return task_id;
  throw ValueError(fmt::format("there is no id for task_type '{}', only for chief, worker, evaluator", task_type));
}

std::string collective_leader(const ClusterSpec& cluster, const std::string& task_type, int task_id) {
  if (!cluster) return "";
  validate_cluster_spec(cluster, task_type, task_id);
  return task_type == "evaluator" ? "" : chief_or_first_worker(cluster);
}

std::string coordination_leader(const ClusterSpec& cluster) {
  if (!cluster) return "";
  return cluster.has_job("ps") ? first_task("ps") : chief_or_first_worker(cluster);
}

}  // namespace tandem
