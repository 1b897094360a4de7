// The cluster of a Slurm job step, from the variables that Slurm sets in each of its processes.
#pragma once

#include <variant>

#include "strategies/cluster/cluster_resolver.h"
#include "strategies/cluster/environment.h"

namespace tandem {

struct SlurmOptions {
  std::map<std::string, int> jobs{};  // tasks of each; when empty every task of the step is a worker
  int port_base = 8888;
  std::optional<int> gpus_per_node{};  // else as many as CUDA_VISIBLE_DEVICES lists, 0 where it is not set
  std::optional<int> gpus_per_task{};  // else the node's GPUs divided among the tasks of the fullest node
  // Of every host of the step, or of the hosts by name; else SLURM_STEP_TASKS_PER_NODE says it.
  std::variant<std::monostate, int, std::map<std::string, int>> tasks_per_node{};
  bool auto_set_gpu = true;  // sets CUDA_VISIBLE_DEVICES to this task's share
  std::string rpc_layer = "grpc";
};

// Tasks fill the hosts in order of the hosts' text (n10 before n9), on ports from port_base up; jobs are filled in
// order of their names. This process is task SLURM_PROCID of that order.
//
// Reads SLURM_PROCID and, where the options leave it open, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST and
// SLURM_STEP_TASKS_PER_NODE, once, in the constructor. RuntimeError for a missing variable, for more GPUs than a node
// has, and for jobs that do not add up to the step's tasks; ValueError for a malformed list.
class SlurmResolver final : public ClusterResolver {
 public:
  explicit SlurmResolver(const SlurmOptions& options = {}, Environment& variables = process_environment());
  ClusterSpec cluster_spec() const override { return cluster_; }

 private:
  struct Layout;
  // A missing part is this process's; "" when even that is not known.
  std::string find_master(const TaskQuery& query) const override;
  AcceleratorCounts count_accelerators(const TaskQuery&) const override { return {{"GPU", gpus_per_task_}}; }
  void allocate(const Layout& layout, int rank);

  ClusterSpec cluster_;
  int gpus_per_task_ = 0;
};

}  // namespace tandem
