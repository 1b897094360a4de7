// The distribute coordinator: who runs, with which context, beside which servers.
#include "strategies/servers/distribute_coordinator.h"

#include <mutex>

#include "strategies/base/errors.h"
#include "tests/conformance/tf/outcome.h"

namespace tandem::coordinator_cases {
namespace {

const FixedEnvironment kNoVariables;

ClusterSpec cluster_of(const std::map<std::string, std::vector<std::string>>& jobs) {
  std::map<std::string, JobTasks> tasks;
  for (const auto& [job, addresses] : jobs) tasks.emplace(job, addresses);
  return ClusterSpec(std::move(tasks));
}

const std::vector<std::string> kWorkers = {"worker0:2222", "worker1:2222", "worker2:2222"};

CoordinatorOptions options_for(ClusterSpec cluster, CoordinationTraits strategy, std::string rpc_layer = "") {
  CoordinatorOptions options;
  options.strategy = strategy;
  options.cluster_spec = std::move(cluster);
  options.rpc_layer = std::move(rpc_layer);
  options.variables = &kNoVariables;
  return options;
}

Json seen(const WorkerContext& context) {
  return {context.master_target, context.num_workers, context.is_chief, context.distributed_mode};
}

std::string job_of(const WorkerContext& context) {
  return context.task_type.empty() ? "None" : context.task_type;
}

// Lists what each run saw, by task type and in the order of the tasks.
Json contexts(const CoordinatorOptions& options) {
  Json tasks;
  run_distribute_coordinator([&](const WorkerContext& context) { tasks[job_of(context)].push_back(seen(context)); },
                             options);
  return tasks;
}

// Two variables that all workers update at the same time.
Json between_graph(Worker& worker) {
  CoordinatorOptions options = options_for(cluster_of({{"worker", kWorkers}, {"ps", {"ps0:1", "ps1:1"}}}),
                                           coordination_traits("ParameterServer"));
  use_tasks_of(worker, options);
  const auto lock = worker.tasks().make_monitor();
  double x = 10, y = 20;
  int workers_ok = 0;
  const auto train = [&](const WorkerContext& context) {
    {
      const std::lock_guard<Monitor> guard(*lock);
      x += 2;
      y -= 2;
    }
    context.wait_for_other_workers();
    const std::lock_guard<Monitor> guard(*lock);
    workers_ok += x == 16 && y == 14;
  };
  run_distribute_coordinator(train, options);
  return {{"x", x}, {"y", y}, {"workers_ok", workers_ok}};
}

// One coordinator a task, as in a process each: which tasks ran the function, started a server, waited for it.
struct Processes {
  std::vector<std::string> ran{}, served{}, joined{};

  void run(CoordinatorOptions options, const std::string& type, int id) {
    options.mode = CoordinatorMode::independent_worker;
    options.task_type = type;
    options.task_id = id;
    const std::string task = type + " " + std::to_string(id);
    options.start_server = [this, task](const ServerDef&) {
      served.push_back(task);
      return [this, task] { joined.push_back(task); };
    };
    run_distribute_coordinator([&](const WorkerContext&) { ran.push_back(task); }, options);
  }
};

Json properties_of(const char* strategy, const ClusterSpec& cluster, std::size_t worker) {
  CoordinationTraits traits = coordination_traits(strategy);
  traits.between_graph = true;  // a run a worker, whatever the strategy would do
  Json all;
  const auto note = [&](const WorkerContext& context) {
    all.push_back({context.experimental_should_init, context.should_checkpoint, context.should_save_summary});
  };
  run_distribute_coordinator(note, options_for(cluster, traits));
  return all[worker];
}

// A worker fails while the others wait for it.
Json failing_worker(Worker& worker) {
  CoordinatorOptions options = options_for(cluster_of({{"worker", kWorkers}}), {.between_graph = true});
  use_tasks_of(worker, options);
  return error_of([&] {
    run_distribute_coordinator(
        [](const WorkerContext& context) {
          if (context.task_id == 1) throw OutOfRangeError("worker 1 has no data");
          context.wait_for_other_workers();
        },
        options);
  });
}

bool add_standalone = add_cases({
    {"dc-001", [](const CaseWorld& world) { return world.on_worker(between_graph); }},
    {"dc-x08", [](const CaseWorld& world) { return world.on_worker(failing_worker); }},
    {"dc-003",
     [](const CaseWorld&) {
       Json all;
       const auto note = [&](const WorkerContext& context) {
         all[job_of(context)].push_back({context.num_workers, context.is_chief, context.distributed_mode});
       };
       run_distribute_coordinator(note, options_for(cluster_of({{"worker", kWorkers}}), {.between_graph = true}));
       return all;
     }},
    {"dc-004",
     [](const CaseWorld&) {
       Json all;
       const auto note = [&](const WorkerContext& context) {
         if (context.task_type == "chief") {
           all["chief"] = seen(context);
         } else {
           all[job_of(context)].push_back({context.num_workers, context.is_chief, context.distributed_mode});
         }
       };
       const ClusterSpec cluster = cluster_of({{"chief", {"fake_chief"}}, {"worker", kWorkers}});
       run_distribute_coordinator(note, options_for(cluster, {.between_graph = true}, "grpc"));
       return all;
     }},
    {"dc-005",
     [](const CaseWorld&) {
       return Json{{"tasks", contexts(options_for(cluster_of({{"worker", kWorkers}}), {}))}};
     }},
    {"dc-008-v1",
     [](const CaseWorld&) {
       CoordinatorOptions options =
           options_for(cluster_of({{"worker", kWorkers}, {"evaluator", {"fake_evaluator"}}}), {});
       options.evaluator_serves = true;
       return Json{{"tasks", contexts(options)}};
     }},
    {"dc-x01",
     [](const CaseWorld&) {
       Json value;
       const auto note = [&](const WorkerContext& context) {
         value = {context.task_type, context.master_target, context.num_workers, context.is_chief,
                  context.distributed_mode};
       };
       run_distribute_coordinator(note, options_for({}, {}));
       return Json{{"value", value}};
     }},
    {"dc-x02",
     [](const CaseWorld&) {
       const ClusterSpec two = cluster_of({{"worker", {"w0:1", "w1:1"}}});
       Json result = {{"unknown", error_of([] { coordination_traits("Telepathy"); })}};
       for (const char* strategy : {"CollectiveAllReduce", "ParameterServer", "Mirrored"}) {
         result["between_graph"][strategy] = coordination_traits(strategy).between_graph;
         result["worker_1"][strategy] = properties_of(strategy, two, 1);
         result["worker_0"] = properties_of(strategy, two, 0);
       }
       return result;
     }},
    {"dc-x03",
     [](const CaseWorld&) {
       const ClusterSpec cluster =
           cluster_of({{"chief", {"chief0:1"}}, {"worker", {"w0:1", "w1:1"}}, {"evaluator", {"e:1"}}});
       return Json{{"tasks", contexts(options_for(cluster, {}, "grpc"))}};
     }},
    {"dc-x04",
     [](const CaseWorld&) {
       const CoordinatorOptions options =
           options_for(cluster_of({{"chief", {"c:1"}}, {"worker", {"w0:1", "w1:1"}}, {"evaluator", {"e:1"}}}),
                       {.between_graph = true});
       Json order = Json::array();
       run_distribute_coordinator(
           [&](const WorkerContext& context) {
             order.push_back(context.task_type + " " + std::to_string(context.task_id));
           },
           options);
       const Json wait = error_of([&] {
         run_distribute_coordinator([](const WorkerContext& context) { context.wait_for_other_workers(); }, options);
       });
       return Json{{"order", order}, {"wait", wait}};
     }},
});

bool add_independent = add_cases({
    {"dc-009",
     [](const CaseWorld&) {
       Processes processes;
       for (int task = 0; task < 3; ++task) {
         processes.run(options_for(cluster_of({{"worker", kWorkers}}), {}), "worker", task);
       }
       const auto has_joined = [&](const char* task) {
         return std::find(processes.joined.begin(), processes.joined.end(), task) != processes.joined.end();
       };
       return Json{{"training_runs", processes.ran.size()},
                   {"servers_started", processes.served.size()},
                   {"server_0_joined", has_joined("worker 0")},
                   {"servers_1_and_2_joined", has_joined("worker 1") && has_joined("worker 2")}};
     }},
    {"dc-x05",
     [](const CaseWorld&) {
       const CoordinatorOptions options =
           options_for(cluster_of({{"chief", {"c:1"}}, {"worker", {"w:1"}}, {"ps", {"p:1"}}, {"evaluator", {"e:1"}}}),
                       {.between_graph = true});
       Processes processes;
       for (const char* type : {"chief", "worker", "ps", "evaluator"}) processes.run(options, type, 0);
       return Json{{"ran", processes.ran},
                   {"served", processes.served},
                   {"joined", processes.joined},
                   {"unknown", error_of([&] { processes.run(options, "tester", 0); })}};
     }},
    {"dc-x07",
     [](const CaseWorld&) {
       CoordinatorOptions options = options_for(cluster_of({{"worker", {"w:1"}}, {"evaluator", {"e:1"}}}), {});
       options.evaluator_serves = true;
       Json called = Json::array();
       options.eval_fn = [&](const WorkerContext& context) { called.push_back(context.master_target); };
       Processes processes;
       processes.run(options, "evaluator", 0);
       return Json{{"ran", processes.ran}, {"served", processes.served}, {"eval_function", called}};
     }},
    {"dc-x06",
     [](const CaseWorld&) {
       const FixedEnvironment variables(
           {{"TF_CONFIG", R"({"cluster": {"worker": ["w0:1", "w1:1"]}, "task": {"type": "worker", "index": 1},)"
                          R"( "rpc_layer": "http"})"}});
       CoordinatorOptions options = options_for({}, {.between_graph = true}, "grpc");
       options.variables = &variables;
       Json done = Json::array();
       options.start_server = [&](const ServerDef&) {
         done.push_back("served");
         return [&] { done.push_back("joined"); };
       };
       Json result;
       const auto note = [&](const WorkerContext& context) {
         result = {{"target", context.master_target}, {"chief", context.is_chief}};
       };
       options.mode = CoordinatorMode::independent_worker;
       run_distribute_coordinator(note, options);
       done.clear();
       options.mode = CoordinatorMode::standalone_client;
       run_distribute_coordinator(note, options);
       result["standalone"] = done;
       return result;
     }},
});

}  // namespace
}  // namespace tandem::coordinator_cases
