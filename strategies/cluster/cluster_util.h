// What a task is in its cluster: TensorFlow's multi_worker_util.
//
// Task types are "chief", "worker", "evaluator" and "ps"; an empty task type is TensorFlow's None. Every function but
// normalize_cluster_spec and coordination_leader validates first. Pure functions, for any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace tandem {

// A spec from whatever describes a cluster. JSON that is no object: ValueError; nothing (null) is an empty cluster.
ClusterSpec normalize_cluster_spec(const ClusterSpec& cluster);
ClusterSpec normalize_cluster_spec(const ClusterDef& cluster);
ClusterSpec normalize_cluster_spec(const nlohmann::json& cluster);

// ValueError for an unknown job or task type, a type that the cluster does not have (but for the evaluator), more than
// one chief or evaluator, and an id that is not below the number of tasks.
void validate_cluster_spec(const ClusterSpec& cluster, const std::string& task_type, int task_id);

// What a parameter server strategy asks for besides: at least one worker and one ps, else ValueError.
void validate_parameter_server_cluster(const ClusterSpec& cluster, const std::string& task_type, int task_id);

// The chief; worker 0 of a cluster without a chief; the evaluator, which leads its own cluster.
bool is_chief(const ClusterSpec& cluster, const std::string& task_type, int task_id);
bool should_save_checkpoint(const ClusterSpec& cluster, const std::string& task_type, int task_id);

// Chief and workers; for an evaluator the evaluators (KeyError without any). ValueError for a ps.
int worker_count(const ClusterSpec& cluster, const std::string& task_type);
// Chief 0, workers after it, the evaluator its own id. ValueError for a ps.
int id_in_cluster(const ClusterSpec& cluster, const std::string& task_type, int task_id);

// Device text of the task that leads collectives, "/job:chief/replica:0/task:0"; "" for an evaluator or no cluster.
std::string collective_leader(const ClusterSpec& cluster, const std::string& task_type, int task_id);
// Of the task that hosts coordination: the first ps, else the chief, else worker 0; "" without a cluster.
std::string coordination_leader(const ClusterSpec& cluster);

}  // namespace tandem
