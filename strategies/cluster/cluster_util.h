// TensorFlow's multi_worker_util: the role of a task in its cluster.
//
// Task types are "chief", "worker", "evaluator" and "ps"; an empty task type is TensorFlow's None. Every function
// except normalize_cluster_spec, check_single_tasks and coordination_leader validates the cluster first. Pure
// functions, for any thread.
#pragma once

#include <string>
#include <string_view>

#include "strategies/cluster/cluster_spec.h"

namespace tandem {

// Makes a spec of whatever describes a cluster. JSON text may be "null" for an empty cluster; ValueError for other JSON
// that is no object, and where ClusterSpec::from_json throws.
ClusterSpec normalize_cluster_spec(const ClusterSpec& cluster);
ClusterSpec normalize_cluster_spec(const ClusterDef& cluster);
ClusterSpec normalize_cluster_spec(std::string_view json);

// ValueError for an unknown job or task type, a type that the cluster does not have (except the evaluator), more than
// one chief or evaluator, and an id that is not below the number of tasks.
void validate_cluster_spec(const ClusterSpec& cluster, const std::string& task_type, int task_id);

// ValueError, with their addresses, for more than one chief or evaluator.
void check_single_tasks(const ClusterSpec& cluster);

// Also requires at least one worker and one ps, as a parameter server strategy does (ValueError).
void validate_parameter_server_cluster(const ClusterSpec& cluster, const std::string& task_type, int task_id);

// True for the chief, for worker 0 of a cluster without a chief, and for the evaluator, which leads its own cluster.
bool is_chief(const ClusterSpec& cluster, const std::string& task_type, int task_id);
bool should_save_checkpoint(const ClusterSpec& cluster, const std::string& task_type, int task_id);

// Counts chief and workers; for an evaluator the evaluators (KeyError if there is none). ValueError for a ps.
int worker_count(const ClusterSpec& cluster, const std::string& task_type);
// Numbers the chief and then the workers from 0; the evaluator keeps its own id. ValueError for a ps.
int id_in_cluster(const ClusterSpec& cluster, const std::string& task_type, int task_id);

// Returns the device text of the task that leads collectives, "/job:chief/replica:0/task:0"; "" for an evaluator and
// without a cluster.
std::string collective_leader(const ClusterSpec& cluster, const std::string& task_type, int task_id);
// Returns the device text of the task that hosts coordination: the first ps, else the chief, else worker 0; "" without
// a cluster.
std::string coordination_leader(const ClusterSpec& cluster);

}  // namespace tandem
