// Runs a training function on the tasks of a cluster and tells each of them what it is: TensorFlow's distribute
// coordinator.
//
// Threads: it has none of its own. Functions run on the calling thread, one after another, unless the caller gives a
// way to run them at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/task.h"
#include "strategies/cluster/environment.h"
#include "strategies/cluster/server.h"

namespace tandem {

class Worker;

// How a strategy shares its work out, as the tables of its properties say.
struct CoordinationTraits {
  bool between_graph = false;  // every worker runs the function; else one run drives all of them
  bool only_chief_inits = false, only_chief_checkpoints = false, only_chief_saves_summary = false;
};
// Of "Mirrored", "OneDevice", "CentralStorage", "ParameterServer", "CollectiveAllReduce" or "MultiWorkerMirrored".
// ValueError for another name.
CoordinationTraits coordination_traits(std::string_view strategy);

// What a running function knows of itself.
struct WorkerContext {
  std::string task_type{};  // "" for TensorFlow's None: a local run, and the one run of in-graph replication
  int task_id = 0;
  std::string master_target{};
  int num_workers = 0;  // chief and workers of the cluster, 0 without one
  bool is_chief = true, distributed_mode = false;
  bool should_init = true, should_checkpoint = true, should_save_summary = true;
  bool has_barrier = false;
  // Blocks until every worker of the run is here. RuntimeError where they run one after another; returns at once
  // where this process runs only one of them.
  std::function<void()> wait_for_other_workers{};
};
using WorkerFunction = std::function<void(const WorkerContext& context)>;

enum class CoordinatorMode : std::uint8_t {
  standalone_client,   // one process runs the functions of all tasks; the tasks only serve
  independent_worker,  // each task runs its own
};

struct CoordinatorOptions {
  CoordinationTraits strategy{};
  CoordinatorMode mode = CoordinatorMode::standalone_client;
  ClusterSpec cluster{};  // when empty, cluster and task come from TF_CONFIG
  std::string task_type{};
  int task_id = 0;
  std::string rpc_layer = "grpc";  // TF_CONFIG's comes first
  WorkerFunction eval_function{};  // of the evaluator; else the worker function
  // The evaluator starts a server and has its own address as master, as in TensorFlow 1.12; in 2.x it does neither.
  bool evaluator_serves = false;

  // Calls function(0) ... function(n - 1) at once and returns when all have; with a monitor for their barrier.
  std::function<void(int n, const std::function<void(int)>& function)> run_concurrently{};
  std::function<std::unique_ptr<Monitor>()> make_monitor{};

  // Starts the server of a task and returns what waits for its end; else a Server of ours.
  std::function<std::function<void()>(const ServerDef& definition)> start_server{};
  const Environment* variables = nullptr;  // else the process's
};

// Lets functions run as tasks of an engine's worker.
void run_on(CoordinatorOptions& options, Worker& worker);

// Without a cluster: one local run. Otherwise, by mode:
// - standalone client: a between-graph strategy's function runs for the chief and every worker, another's once, in
//   the name of no task and against the chief or worker 0; the evaluator's runs too. A task that is no client serves.
// - independent worker: every task but a 2.x evaluator starts a server. Between-graph workers run the function, else
// only
//   the chief does and the others wait for their server; a ps always does.
// ValueError for a task type that does not fit; whatever a function throws.
void run_distribute_coordinator(const WorkerFunction& function, CoordinatorOptions options);

}  // namespace tandem
