#include "strategies/servers/distribute_coordinator.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>

#include "engine/worker.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/cluster_resolver.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/tf_config_resolver.h"

namespace tandem {
namespace {

// A reusable barrier. Each wait() returns when all `parties` have called it as often as the caller, or rethrows the
// error of one that has failed and will not come.
class Barrier {
 public:
  Barrier(std::unique_ptr<Monitor> monitor, int parties) : monitor_(std::move(monitor)), parties_(parties) {}

  void wait() {
    const std::lock_guard<Monitor> lock(*monitor_);
    const int round = round_;
    if (++arrived_ == parties_) {
      arrived_ = 0;
      ++round_;
      monitor_->notify_all();
    }
    while (round == round_ && !failure_) monitor_->wait("the other workers of the coordinator");
    if (round == round_) std::rethrow_exception(failure_);
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard<Monitor> lock(*monitor_);
    if (!failure_) failure_ = std::move(failure);
    monitor_->notify_all();
  }

 private:
  std::unique_ptr<Monitor> monitor_;  // guards the rest
  int parties_, arrived_ = 0, round_ = 0;
  std::exception_ptr failure_;
};

int tasks_of(const ClusterSpec& cluster, const char* job) {
  return cluster.has_job(job) ? cluster.num_tasks(job) : 0;
}

int workers_of(const ClusterSpec& cluster) {
  return tasks_of(cluster, "chief") + tasks_of(cluster, "worker");
}

// Returns the address at which a run opens its session. In-graph replication uses the chief's or worker 0's.
std::string target_of(const CoordinatorOptions& options, const std::string& type, int id) {
  if (!options.cluster_spec || (type == "evaluator" && !options.evaluator_serves)) return "";
  const bool has_task = !type.empty();
  const std::string job = has_task ? type : options.cluster_spec.has_job("chief") ? "chief" : "worker";
  return format_master_url(options.cluster_spec.task_address(job, has_task ? id : 0), options.rpc_layer);
}

bool leads(const ClusterSpec& cluster, const std::string& type, int id) {
  if (!cluster || type.empty() || type == "chief" || type == "evaluator") return true;
  return type == "worker" && id == 0 && !cluster.has_job("chief");
}

WorkerContext context_of(const CoordinatorOptions& options, const std::string& type, int id) {
  const bool is_chief = leads(options.cluster_spec, type, id);
  return {.task_type = type,
          .task_id = id,
          .master_target = target_of(options, type, id),
          .num_workers = workers_of(options.cluster_spec),
          .is_chief = is_chief,
          .distributed_mode = options.cluster_spec && type != "evaluator",
          .experimental_should_init = is_chief || !options.strategy.only_chief_inits,
          .should_checkpoint = is_chief || !options.strategy.only_chief_checkpoints,
          .should_save_summary = is_chief || !options.strategy.only_chief_saves_summary,
          .wait_for_other_workers = [] {}};
}

const WorkerFunction& eval_or(const WorkerFunction& function, const CoordinatorOptions& options) {
  return options.eval_fn ? options.eval_fn : function;
}

void run_all(const CoordinatorOptions& options, const std::vector<std::function<void()>>& runs) {
  const int count = static_cast<int>(runs.size());
  const auto run = [&](int i) { runs[static_cast<std::size_t>(i)](); };
  if (options.run_concurrently) return options.run_concurrently(count, run);
  for (int i = 0; i < count; ++i) run(i);
}

void set_barrier(WorkerContext& context, Barrier* barrier) {
  context.has_barrier = barrier != nullptr;
  if (barrier) {
    context.wait_for_other_workers = [barrier] { barrier->wait(); };
  } else if (context.num_workers > 1) {
    context.wait_for_other_workers = [] {
      throw RuntimeError(
          "workers run one after another and cannot wait for each other: give the coordinator a way to run them at the "
          "same time");
    };
  }
}

void run_standalone(const WorkerFunction& function, const CoordinatorOptions& options) {
  const ClusterSpec& cluster = options.cluster_spec;
  std::unique_ptr<Barrier> barrier;
  if (options.run_concurrently && options.make_monitor) {
    barrier = std::make_unique<Barrier>(options.make_monitor(), workers_of(cluster));
  }
  std::vector<std::function<void()>> runs;
  const auto add = [&](const WorkerFunction& called, WorkerContext context) {
    runs.push_back([&called, context = std::move(context), barrier = barrier.get()] {
      try {
        called(context);
      } catch (...) {
        if (barrier && context.has_barrier) barrier->fail(std::current_exception());
        throw;
      }
    });
  };
  if (options.strategy.between_graph) {
    for (const char* job : {"chief", "worker"}) {
      if (!cluster.has_job(job)) continue;
      for (const int task : cluster.task_indices(job)) {
        WorkerContext context = context_of(options, job, task);
        set_barrier(context, barrier.get());
        add(function, std::move(context));
      }
    }
  } else {
    add(function, context_of(options, "", 0));
  }
  if (cluster.has_job("evaluator")) add(eval_or(function, options), context_of(options, "evaluator", 0));
  run_all(options, runs);
}

std::function<void()> start_server(const CoordinatorOptions& options) {
  const ServerDef definition = make_server_def(options.cluster_spec, options.task_type, options.task_id);
  if (options.start_server) return options.start_server(definition);
  return [server = std::make_shared<Server>(definition)] { server->join(); };
}

void run_independent(const WorkerFunction& function, const CoordinatorOptions& options) {
  const std::string& type = options.task_type;
  const auto run = [&](const WorkerFunction& called, const std::string& task_type, int task_id) {
    called(context_of(options, task_type, task_id));
  };
  if (type != "chief" && type != "worker" && type != "evaluator" && type != "ps") {
    throw ValueError(fmt::format("unexpected task_type '{}' (known: chief, worker, evaluator, ps)", type));
  }
  if (type == "evaluator") check_evaluator_is_alone();
  const bool serves = type != "evaluator" || options.evaluator_serves;
  const std::function<void()> join = serves ? start_server(options) : nullptr;
  if (type == "evaluator") return run(eval_or(function, options), type, options.task_id);
  if (type != "ps" && options.strategy.between_graph) return run(function, type, options.task_id);
  if (type != "ps" && leads(options.cluster_spec, type, options.task_id)) return run(function, "", 0);
  join();
}

void take_tf_config(CoordinatorOptions& options) {
  const TfConfigResolver config({}, options.variables ? *options.variables : process_environment());
  options.rpc_layer = config.rpc_layer().value_or(options.rpc_layer);
  if (options.cluster_spec) return;
  options.cluster_spec = config.cluster_spec();
  options.task_type = config.task_type().value_or(options.task_type);
  options.task_id = config.task_id().value_or(options.task_id);
}

}  // namespace

CoordinationTraits coordination_traits(std::string_view strategy) {
  if (strategy == "Mirrored" || strategy == "OneDevice" || strategy == "CentralStorage") return {};
  CoordinationTraits traits{.between_graph = true, .only_chief_checkpoints = true, .only_chief_saves_summary = true};
  if (strategy == "CollectiveAllReduce" || strategy == "MultiWorkerMirrored") return traits;
  traits.only_chief_inits = true;
  if (strategy == "ParameterServer") return traits;
  throw ValueError(fmt::format(
      "unknown strategy '{}' (known: Mirrored, OneDevice, CentralStorage, ParameterServer, CollectiveAllReduce, "
      "MultiWorkerMirrored)",
      strategy));
}

void use_tasks_of(Worker& worker, CoordinatorOptions& options) {
  options.run_concurrently = [&worker](int n, const std::function<void(int)>& function) {
    worker.tasks().run_concurrently(n, function);
  };
  options.make_monitor = [&worker] { return worker.tasks().make_monitor(); };
}

void run_distribute_coordinator(const WorkerFunction& worker_fn, CoordinatorOptions options) {
  take_tf_config(options);
  if (!options.cluster_spec) return worker_fn(context_of(options, "", 0));
  if (options.mode == CoordinatorMode::independent_worker) return run_independent(worker_fn, options);
  if (options.task_type.empty() || options.task_type == "client") return run_standalone(worker_fn, options);
  start_server(options)();
}

}  // namespace tandem
