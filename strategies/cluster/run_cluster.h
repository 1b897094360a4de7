// The cluster that a resolver describes, and the workers of an engine's run.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/worker.h"
#include "strategies/cluster/cluster_resolver.h"

namespace tandem {

// Returns the tasks of a cluster as the workers of a run (EngineOptions::workers): the chief, the workers, then the
// parameter servers, each job by index. Ranks of a launch get the tasks in this order. The chief and the workers
// compute on `devices` devices each; a parameter server has its CPU only. Evaluators are left out, because they take no
// part in training. An empty cluster is one worker, as in TensorFlow without TF_CONFIG. ValueError for a job of another
// name, for more than one chief or evaluator, and for two tasks of one address, unless its port is 0.
std::vector<WorkerSpec> workers_of(const ClusterSpec& cluster, DeviceType type, int devices);

// Says which task of the resolver's cluster this process is, so that an engine that spreads over processes (mpi) meets
// the other tasks at their addresses, over TCP. Call it before open_engine(), with workers_of() the cluster. Does
// nothing for an evaluator, for a cluster of at most one task, and where a launcher (mpirun, srun) has started this
// process together with others: there the launch decides. ValueError as for workers_of(), and for a task that is
// missing or not in the cluster.
void start_task_of(const ClusterResolver& resolver);

// RuntimeError in a process that a launcher has started together with others, which would wait for it: an evaluator is
// no task of the cluster, and runs by itself.
void check_evaluator_is_alone();

// Checks what a resolver says against the run. Accepts a resolver that describes no cluster, or not which task this is.
// ValueError with both descriptions where the tasks of its cluster, evaluators aside, are others than those of the run,
// and where it says that this program's task is another one; also for a cluster that workers_of() refuses, and for a
// task that is not in the cluster or has no index.
void check_cluster_of_run(const ClusterResolver& resolver, const Worker& worker);

// Does so for a cluster, and a task of it, that `source` says: "the cluster of configure()". An empty job or no task
// contradicts nothing.
void check_cluster_of_run(const ClusterSpec& cluster, const std::string& job, std::optional<int> task,
                          const Worker& worker, std::string_view source);

// Returns the resolver of a strategy: `given`, else one of TF_CONFIG if that describes a cluster, each checked as
// above; else that of the run. In an evaluator TF_CONFIG describes the cluster of others, so that of the run counts.
// Where all workers of a run are in one process, only the cluster of TF_CONFIG is checked, and the resolver of each
// worker says that it is this worker.
std::shared_ptr<const ClusterResolver> checked_resolver(const Worker& worker,
                                                        std::shared_ptr<const ClusterResolver> given);

// ValueError, with their names, for a run that has more than one chief.
void check_chiefs_of_run(const Worker& worker);

// Makes a resolver of the run's cluster. Its workers have no network addresses, so job and task are used in their
// place.
std::shared_ptr<const ClusterResolver> resolver_of_run(const Worker& worker);

// A task as messages name it, "worker 0", and all tasks of a cluster or a run.
std::string task_text(const std::string& job, int task);
std::set<std::string> tasks_of(const ClusterSpec& cluster);
std::set<std::string> tasks_of(std::span<const WorkerSpec> run);

}  // namespace tandem
