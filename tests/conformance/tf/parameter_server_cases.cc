// Areas "parameter-server" and "aggregating-variable": variables in one place, and what several replicas and workers
// make of them.
#include <fmt/format.h>

#include "strategies/servers/parameter_server.h"
#include "strategies/types/central_storage.h"
#include "tests/conformance/tf/stage.h"

namespace tandem::parameter_server_cases {
namespace {

using Aggregation = VariableAggregation;

// Calls `steps` on every worker and the chief of the setup's cluster, each under a strategy of its own; the ps tasks
// just return. Results in the order of the cluster, ps last (null).
std::vector<Json> on_ps_cluster(const CaseWorld& world, const std::function<Json(Stage&)>& steps) {
  std::vector<WorkerSpec> cluster;
  const bool has_chief = world.spec().setup.value("chief", false);
  if (has_chief) cluster.push_back({.job = "chief", .task = 0, .device_count = world.replicas()});
  for (int task = 0; task < world.workers(); ++task) {
    cluster.push_back({.job = "worker", .task = task, .device_count = world.replicas()});
  }
  for (int task = 0; task < world.spec().setting("ps", 0); ++task) {
    cluster.push_back({.job = "ps", .task = task, .device_count = 0});
  }
  return world.on_cluster(cluster, [&](Worker& worker) -> Json {
    if (worker.job() == "ps") return nullptr;
    ParameterServerStrategy strategy(worker);
    Stage stage(worker, strategy, world.spec());
    return steps(stage);
  });
}

// Blocks until every worker and the chief has come here.
void meet(Worker& worker) {
  std::vector<DeviceId> hosts;
  for (const WorkerSpec& spec : worker.cluster()) {
    if (spec.job != "ps") hosts.push_back({.job = spec.job, .task = spec.task, .type = DeviceType::cpu, .index = 0});
  }
  const std::vector<Tensor> flag = {worker.cpu().allocate(DType::f32, {1})};
  const std::vector<Stream*> streams = {&worker.cpu().compute_stream()};
  streams.front()->launch(op::fill(flag.front(), 1));
  worker.communicator(hosts).all_reduce(flag, Reduction::sum, streams);
  worker.cpu().synchronize();
}

std::shared_ptr<Variable> named(const Stage& stage, const std::string& name, double initial, Aggregation aggregation) {
  return stage.strategy.create_variable({.name = name,
                                         .shape = {},
                                         .initial_value = [initial](std::int64_t) { return initial; },
                                         .aggregation = aggregation});
}

// x and y SUM, z ONLY_FIRST_REPLICA, each increased by one in every replica of every worker.
Json increments(Stage& stage, const std::array<double, 3>& initial) {
  const auto x = named(stage, "x", initial[0], Aggregation::sum);
  const auto y = named(stage, "y", initial[1], Aggregation::sum);
  const auto z = named(stage, "z", initial[2], Aggregation::only_first_replica);
  run_each(stage, [&] {
    for (const auto& v : {x, y, z}) v->assign_add(stage.tensor(replica().device(), {}, {1}));
  });
  meet(stage.worker);
  return {{"x", stage.json(x->read())}, {"y", stage.json(y->read())}, {"z", stage.json(z->read())}};
}

const CaseFunction kIncrements = [](const CaseWorld& world) {
  return on_ps_cluster(world, [](Stage& stage) { return increments(stage, {10, 20, 30}); }).front();
};

std::string ps_of(const Variable& variable) {
  const DeviceId& id = variable.devices().front()->id();
  return fmt::format("/job:{}/task:{}", id.job, id.task);
}

// Every case of one stored value and two replicas.
Json global_step(Stage& stage) {
  const VariableSpec spec{.name = "global_step",
                          .dtype = DType::i64,
                          .shape = {},
                          .initial_value = {},
                          .trainable = false,
                          .aggregation = Aggregation::only_first_replica};
  const auto step = stage.strategy.create_variable(spec);
  return {{"kind", step->kind() == VariableKind::aggregating ? "AggregatingVariable" : "plain resource variable"},
          {"same_object", stage.strategy.extended().value_container(step->components().front()).variable() == step}};
}

Json names_and_values(const Stage& stage, const std::vector<std::shared_ptr<Variable>>& variables) {
  Json names, values;
  for (const auto& variable : variables) {
    names.push_back(variable->name());
    values.push_back(stage.json(variable->read()));
  }
  return {{"names", names}, {"values", values}};
}

// Variables of one name, two of them meant so, and one that is called as the second one is then.
Json equal_names(Stage& stage) {
  return names_and_values(stage, {named(stage, "v", 1, Aggregation::none), named(stage, "v", 2, Aggregation::none),
                                  named(stage, "v_1", 3, Aggregation::none)});
}

// Every worker adds 1 to the first and 10 to the second of two variables of one name.
Json equal_names_on_workers(const CaseWorld& world) {
  return on_ps_cluster(world, [](Stage& stage) {
    const auto first = named(stage, "v", 1, Aggregation::none), second = named(stage, "v", 2, Aggregation::none);
    first->assign_add(1.0);
    second->assign_add(10.0);
    meet(stage.worker);
    return names_and_values(stage, {first, second});
  });
}

// Worker 0 creates a and b, then worker 1 b and a, which go to other servers; then one of another shape and type.
Json disagreeing_workers(const CaseWorld& world) {
  return on_ps_cluster(world, [](Stage& stage) -> Json {
    const auto made = [&stage](const std::string& name, const Shape& shape = {}, DType dtype = DType::f32) {
      return error_of(
          [&] { stage.strategy.create_variable({.name = name, .dtype = dtype, .shape = shape, .initial_value = {}}); });
    };
    Json errors = Json::array();
    if (stage.worker.task() == 0) {
      for (const char* name : {"a", "b", "c", "d"}) errors.push_back(made(name));
    }
    meet(stage.worker);
    if (stage.worker.task() == 1) {
      errors = {made("b"), made("a"), made("c", {2}), made("d", {}, DType::f64)};
    }
    return errors;
  });
}

// Strategies one after the other in the same worker are one program to TensorFlow, with one set of names.
Json names_of_later_strategies(const CaseWorld& world) {
  return on_ps_cluster(world, [](Stage& stage) {
    const auto first = named(stage, "v", 1, Aggregation::none);
    ParameterServerStrategy again(stage.worker);
    const Stage later(stage.worker, again, stage.spec);
    return names_and_values(stage, {first, named(later, "v", 2, Aggregation::none)});
  })[0];
}

const bool added = add_cases({
    {"ps-name-1", [](const CaseWorld& world) { return on_ps_cluster(world, equal_names)[0]; }},
    {"ps-name-2", equal_names_on_workers},
    {"ps-name-3", disagreeing_workers},
    {"ps-name-4", names_of_later_strategies},
    {"agg-x01", staged([](Stage& stage) -> Json {
       return {{"values", equal_names(stage)["values"]}};
     })},
    {"agg-002", staged([](Stage& stage) -> Json {
       const auto v = stage.var(1, Aggregation::mean);
       const Value r = stage.strategy.run([&](const Value::Parts&) {
         v->assign_add(Value::literal(2));
         return Value(v);
       });
       return {{"local_results", stage.locals(r)}};
     })},
    {"agg-003", staged([](Stage& stage) -> Json {
       const auto v = stage.var(1);
       run_each(stage, [&] { v->assign(5.0); });
       return nullptr;
     })},
    {"agg-005", staged([](Stage& stage) -> Json {
       const auto v = stage.var(0, Aggregation::only_first_replica);
       run_each(stage, [&] { v->assign_add(1.0 + replica_id()); });
       return {{"v", stage.json(v->read())}};
     })},
    {"agg-006", staged([](Stage& stage) -> Json {
       const auto v = stage.var(0, Aggregation::sum);
       run_each(stage, [&] { v->assign(Value::literal(5)); });
       return nullptr;
     })},
    {"agg-007", staged(global_step)},
    {"agg-008", staged(global_step)},
    {"ps-001",
     [](const CaseWorld& world) {
       return on_ps_cluster(world, [](Stage& stage) -> Json {
         const auto n = named(stage, "n", 10, Aggregation::none);
         Json found = {{"n", ps_of(*n)}};
         run_each(stage, [&] {
           const auto x = named(stage, "x", 10, Aggregation::sum);
           found["x"] = ps_of(*x);
           {
             const auto colocated = stage.strategy.extended().colocate_vars_with(x);
             found["y"] = ps_of(*named(stage, "y", 20, Aggregation::sum));
           }
           found["z"] = ps_of(*named(stage, "z", 10, Aggregation::sum));
           const std::string u = ps_of(*named(stage, "u", 30, Aggregation::none));
           const std::string v = ps_of(*named(stage, "v", 30, Aggregation::none));
           found["u_and_v"] = u == v ? "on one ps task" : "on two different ps tasks";
           const DeviceId& id = replica().device().id();
           found["computes_on"] = fmt::format("/job:{}/task:{}", id.job, id.task);
         });
         return found;
       })[1];
     }},
    {"ps-002",
     [](const CaseWorld& world) {
       return on_ps_cluster(world, [](Stage& stage) -> Json {
         if (stage.worker.task() != 1) return nullptr;
         const auto x = named(stage, "x", 10, Aggregation::sum);
         const auto y = named(stage, "y", 20, Aggregation::sum);
         const auto z = named(stage, "z", 10, Aggregation::sum);
         Json f;
         run_each(stage, [&] {
           y->assign_add(x->assign_add(Value::literal(3)));
           z->assign_add(y->value());
           const Tensor sum = stage.tensor(replica().device(), {}, {3});
           sum.device().compute_stream().launch(op::scale_add(sum, z->value(), 1, 1));
           f = stage.json(sum);
         });
         return {{"x", stage.json(x->read())}, {"y", stage.json(y->read())}, {"z", stage.json(z->read())}, {"f", f}};
       })[1];
     }},
    {"ps-006",
     [](const CaseWorld& world) {
       return world.on_workers(1, 1, [&](Worker& worker) -> Json {
         ParameterServerStrategy strategy(worker);
         Stage stage(worker, strategy, world.spec());
         const Device& compute = *strategy.extended().worker_devices().front();
         const bool on_it = stage.var(1)->devices().front() == &compute;
         return {{"devices", strategy.extended().worker_devices().size()},
                 {"variable", on_it ? "the compute device" : "elsewhere"}};
       })[0];
     }},
    {"ps-008",
     [](const CaseWorld& world) -> Json {
       Json found;
       for (const int replicas : {1, 2}) {
         const std::vector<WorkerSpec> cluster = {{.job = "worker", .task = 0, .device_count = replicas},
                                                  {.job = "ps", .task = 0, .device_count = 0},
                                                  {.job = "ps", .task = 1, .device_count = 0}};
         const Json result = world.on_cluster(cluster, [&](Worker& worker) -> Json {
           if (worker.job() == "ps") return nullptr;
           const Partitioner two = [](const Shape& shape, DType dtype) {
             return FixedShardsPartitioner(2)(shape, dtype);
           };
           ParameterServerStrategy strategy(worker, {}, {.partitioner = two});
           Stage stage(worker, strategy, world.spec());
           ShardedVariable x = strategy.create_sharded_variable(
               {.name = "x",
                .shape = {2},
                .initial_value = [](std::int64_t i) { return 10.0 * static_cast<double>(i + 1); },
                .aggregation = Aggregation::sum});
           run_each(stage, [&] { x.assign_add(stage.tensor(replica().device(), {2}, {3, 5})); });
           return {{"devices", {ps_of(*x.variables()[0]), ps_of(*x.variables()[1])}},
                   {"x", stage.json(x.concatenated_on(worker.cpu()))}};
         })[0];
         found["part_devices"] = result["devices"];
         found["x"][replicas == 1 ? "1 replica" : "2 replicas"] = result["x"];
       }
       return found;
     }},
    {"ps-016",
     [](const CaseWorld& world) -> Json {
       Json found = Json::array(), between_graph = true;
       for (const bool has_chief : {true, false}) {
         std::vector<WorkerSpec> cluster;
         if (has_chief) cluster.push_back({.job = "chief", .task = 0});
         for (int task = 0; task < (has_chief ? 1 : 2); ++task) cluster.push_back({.job = "worker", .task = task});
         cluster.push_back({.job = "ps", .task = 0, .device_count = 0});
         for (const Json& one : world.on_cluster(cluster, [&](Worker& worker) -> Json {
                if (worker.job() == "ps") return nullptr;
                ParameterServerStrategy strategy(worker);
                const StrategyExtended& extended = strategy.extended();
                const bool init = extended.experimental_should_init();
                const bool agree = init == extended.should_checkpoint() && init == extended.should_save_summary();
                return {{"init", agree ? Json(init) : Json("they differ")},
                        {"between_graph", extended.experimental_between_graph()}};
              })) {
           if (one.is_null()) continue;
           found.push_back(one["init"]);
           if (!one["between_graph"].get<bool>()) between_graph = false;
         }
       }
       return {{"should_init_checkpoint_summary", found}, {"between_graph", between_graph}};
     }},
    {"ps-012",
     [](const CaseWorld& world) -> Json {
       const Json ps = on_ps_cluster(world, [](Stage& stage) {
                         return Json(stage.strategy.extended().in_multi_worker_mode());
                       }).front();
       const Json central = world.on_workers(1, 2, [](Worker& worker) {
         CentralStorageStrategy strategy(worker);
         return Json(strategy.extended().in_multi_worker_mode());
       })[0];
       return {{"ps", ps}, {"central_storage", central}};
     }},
    {"ps-inc-1", kIncrements},
    {"ps-inc-2", kIncrements},
    {"ps-inc-3", kIncrements},
    {"ps-inc-4", kIncrements},
    {"ps-inc-local-2",
     [](const CaseWorld& world) {
       return on_ps_cluster(world, [](Stage& stage) { return increments(stage, {10, 20, 30}); }).front();
     }},
    {"ps-min",
     [](const CaseWorld& world) {
       return on_ps_cluster(world,
                            [](Stage& stage) -> Json {
                              const auto k = named(stage, "k", 0, Aggregation::none);
                              std::vector<double> distance = {1};
                              for (int step = 0; step < 10; ++step) {
                                const Value gradient = stage.strategy.run([&](const Value::Parts&) {
                                  const Tensor at = k->value();
                                  const Tensor g = stage.tensor(at.device(), {}, {-2});
                                  at.device().compute_stream().launch(op::scale_add(g, at, 2, 1));
                                  return Value(g);
                                });
                                StrategyExtended& extended = stage.strategy.extended();
                                const Value sum = extended.reduce_to(ReduceOp::sum, gradient, k);
                                extended.update(k,
                                                [](Variable& v, const Value::Parts& arguments) {
                                                  const Tensor& component = v.handle();
                                                  component.device().compute_stream().launch(
                                                      op::scale_add(component, arguments[0].tensor(), -0.05, 1));
                                                  return Value();
                                                },
                                                {sum});
                                meet(stage.worker);
                                distance.push_back(std::abs(stage.json(k->read()).get<double>() - 1));
                                meet(stage.worker);
                              }
                              return {{"abs(k-1)_decreases", std::is_sorted(distance.rbegin(), distance.rend())}};
                            })
           .front();
     }},
    {"red-044",
     [](const CaseWorld& world) {
       return world.on_workers(2, 2, [&](Worker& worker) -> Json {
         if (worker.task() != 1) return nullptr;
         ParameterServerStrategy strategy(worker);
         Stage stage(worker, strategy, world.spec());
         strategy.extended().reduce_to(ReduceOp::sum, stage.per_replica({1, 2}), "/job:worker/task:0/device:CPU:0");
         return nullptr;
       })[1];
     }},
});

}  // namespace
}  // namespace tandem::parameter_server_cases
