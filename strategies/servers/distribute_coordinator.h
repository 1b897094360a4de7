// TensorFlow's distribute coordinator: runs a training function on the tasks of a cluster and tells each of them its
// role.
//
// Threads: it has none of its own. Functions run on the calling thread, one after another, unless the caller provides a
// way to run them at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/task.h"
#include "strategies/cluster/environment.h"
#include "strategies/servers/server.h"

namespace tandem {

class Worker;

// The properties of a strategy that decide which tasks run the function and what they may do.
struct CoordinationTraits {
  bool between_graph = false;  // every worker runs the function; otherwise one run drives all of them
  bool only_chief_inits = false, only_chief_checkpoints = false, only_chief_saves_summary = false;
};
// Returns those of "Mirrored", "OneDevice", "CentralStorage", "ParameterServer", "CollectiveAllReduce" or
// "MultiWorkerMirrored". ValueError for another name.
CoordinationTraits coordination_traits(std::string_view strategy);

// TensorFlow's _WorkerContext: the role of a running function.
struct WorkerContext {
  std::string task_type{};  // "" for TensorFlow's None: a local run, and the one run of in-graph replication
  int task_id = 0;
  std::string master_target{};
  int num_workers = 0;  // chief and workers of the cluster, 0 without one
  bool is_chief = true, distributed_mode = false;
  bool experimental_should_init = true, should_checkpoint = true, should_save_summary = true;
  bool has_barrier = false;
  // Blocks until every worker of the run has called it. Returns immediately when this process runs only one of the
  // workers; RuntimeError when they run one after another.
  std::function<void()> wait_for_other_workers{};
};
using WorkerFunction = std::function<void(const WorkerContext& context)>;

enum class CoordinatorMode : std::uint8_t {
  standalone_client,   // one process runs the functions of all tasks; the tasks only serve
  independent_worker,  // each task runs its own function
};

struct CoordinatorOptions {
  CoordinationTraits strategy{};
  CoordinatorMode mode = CoordinatorMode::standalone_client;
  ClusterSpec cluster_spec{};  // if empty, cluster and task are taken from TF_CONFIG
  std::string task_type{};
  int task_id = 0;
  std::string rpc_layer = "grpc";  // TF_CONFIG's takes precedence
  WorkerFunction eval_fn{};        // the evaluator's function; if empty, the evaluator runs worker_fn
  // Makes the evaluator start a server and use its own address as master, as in TensorFlow 1.12; in 2.x it does
  // neither.
  bool evaluator_serves = false;

  // Calls function(0) ... function(n - 1) at the same time and returns when all have returned. `make_monitor` makes the
  // monitor of their barrier. use_tasks_of() sets both.
  std::function<void(int n, const std::function<void(int)>& function)> run_concurrently{};
  std::function<std::unique_ptr<Monitor>()> make_monitor{};

  // Starts the server of a task and returns a function that waits for its end. If empty, a Server is started.
  std::function<std::function<void()>(const ServerDef& definition)> start_server{};
  const Environment* variables = nullptr;  // if null, the process's environment
};

// Makes functions run as tasks of an engine's worker.
void use_tasks_of(Worker& worker, CoordinatorOptions& options);

// Calls worker_fn for the tasks of the cluster:
// - Without a cluster: once, locally.
// - Standalone client: for a between-graph strategy once for the chief and once for every worker, for any other
// strategy
//   once in total, against the chief or worker 0; and eval_fn for the evaluator. A task of the cluster only serves.
// - Independent worker: every task except a 2.x evaluator starts a server. With a between-graph strategy every chief
// and
//   worker calls worker_fn; with any other strategy only the leader does, and the others wait for their server, as a ps
//   always does.
// Throws RuntimeError for an evaluator among the ranks of a launch, whose others would wait for it, ValueError for a
// task type that does not fit, and rethrows what a function throws.
void run_distribute_coordinator(const WorkerFunction& worker_fn, CoordinatorOptions options);

}  // namespace tandem
