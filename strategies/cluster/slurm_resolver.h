// tf.distribute.cluster_resolver.SlurmClusterResolver: the cluster of a Slurm job step, learnt from the variables that
// Slurm sets in each of the step's processes.
#pragma once

#include <variant>

#include "strategies/cluster/cluster_resolver.h"
#include "strategies/cluster/environment.h"

namespace tandem {

struct SlurmOptions {
  std::map<std::string, int> jobs{};  // number of tasks of each; if empty, every task of the step is a worker
  int port_base = 8888;
  std::optional<int> gpus_per_node{};  // default: as many as CUDA_VISIBLE_DEVICES lists, 0 if it is not set
  std::optional<int> gpus_per_task{};  // default: the node's GPUs divided among the tasks of the fullest node
  // One number for every host of the step, or a number for each host by name; default: SLURM_STEP_TASKS_PER_NODE.
  std::variant<std::monostate, int, std::map<std::string, int>> tasks_per_node{};
  bool auto_set_gpu = true;  // set CUDA_VISIBLE_DEVICES to this task's share
  std::string rpc_layer = "grpc";
};

// Fills the hosts, sorted as text (n10 before n9), with tasks on ports from port_base up, and the jobs, sorted by name,
// with these tasks. This process is task SLURM_PROCID in that order.
//
// The constructor reads SLURM_PROCID and, unless the options give their values, SLURM_STEP_NUM_TASKS,
// SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE. RuntimeError for a missing variable, for more GPUs than a node
// has, and for jobs that do not add up to the step's tasks; ValueError for a malformed list.
class SlurmResolver final : public ClusterResolver {
 public:
  explicit SlurmResolver(const SlurmOptions& options = {}, Environment& variables = process_environment());
  ClusterSpec cluster_spec() const override { return cluster_; }

 private:
  struct Layout;
  // Completes the query with this process's task; returns "" when that is not known either.
  std::string find_master(const TaskQuery& query) const override;
  AcceleratorCounts count_accelerators(const TaskQuery&) const override { return {{"GPU", gpus_per_task_}}; }
  void allocate(const Layout& layout, int rank);

  ClusterSpec cluster_;
  int gpus_per_task_ = 0;
};

}  // namespace tandem
