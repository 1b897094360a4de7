// Datasets distributed over the workers and replicas of one strategy.
#include "tests/conformance/tf/input_values.h"

namespace tandem::input_v2_cases {
namespace {

Dataset floats_5_to_8() {
  return numbers({5, 6, 7, 8});
}

// Over the replicas of one worker, to the end.
Json distribute(const CaseWorld& world, const Dataset& dataset, bool sync = true) {
  return world.on_worker([&](Worker& worker) -> Json {
    auto iterator = distribute_dataset(dataset, input_workers(worker, 1, 0, sync)).iterator();
    Json steps = Json::array();
    const Json end = error_of([&] {
      for (;;) steps.push_back(step_json(worker, iterator.get_next(), worker.devices().size()));
    });
    return {{"steps", steps}, {"end", end}};
  });
}

// What each worker of the case gets, by the name of its index; of one replica alone without the list around it.
Json distribute_over_workers(const CaseWorld& world, const Dataset& dataset) {
  const auto all = world.on_workers(world.workers(), world.replicas(), [&](Worker& worker) {
    return steps_of(worker, distribute_dataset(dataset, input_workers(worker, worker.count(), worker.index())));
  });
  Json result;
  for (std::size_t i = 0; i < all.size(); ++i) result["worker" + std::to_string(i)] = all[i];
  return result;
}

Json from_function_over_workers(const CaseWorld& world, const DatasetFromContext& function) {
  const auto all = world.on_workers(world.workers(), world.replicas(), [&](Worker& worker) {
    return steps_of(worker, distribute_datasets_from_function(function, agreeing_workers(worker)));
  });
  Json result;
  for (std::size_t i = 0; i < all.size(); ++i) result["worker" + std::to_string(i)] = all[i];
  return result;
}

Json only_replicas(Json by_worker) {
  for (auto& [name, steps] : by_worker.items()) steps = only_replica(steps);
  return by_worker;
}

// The second step of the chief and of the worker, who have one replica each.
Json second_steps(const Json& by_worker) {
  return {{"chief", by_worker["worker0"][1][0]}, {"worker", by_worker["worker1"][1][0]}};
}

Json batch_splitting(const CaseWorld& world) {
  Json result;
  for (const bool sync : {true, false}) {
    const Json steps = distribute(world, Dataset::range(100).batch(10), sync)["steps"];
    result[sync ? "known" : "unknown"] = {
        {"pieces_of", steps[0][0].size()}, {"first_step", steps[0]}, {"steps", steps.size()}};
  }
  return result;
}

Json different_datasets(const CaseWorld& world) {
  return only_replicas(from_function_over_workers(
      world, [](const InputContext& context) { return Dataset::range(8 + context.input_pipeline_id()).batch(2); }));
}

Json explicit_shards(const CaseWorld& world) {
  Json result;
  for (int index = 0; index < 2; ++index) {
    result["index" + std::to_string(index)] = world.on_worker([&](Worker& worker) {
      return steps_of(worker, distribute_dataset(Dataset::range(10), input_workers(worker, 2, index, false)));
    });
  }
  return result;
}

Json data_sharding(const CaseWorld& world) {
  Json result;
  for (const AutoShardPolicy policy : {AutoShardPolicy::automatic, AutoShardPolicy::data}) {
    const Dataset dataset = Dataset::range(8).batch(3).with_options({.auto_shard_policy = policy});
    result[std::string(name_of(policy))] = only_replicas(distribute_over_workers(world, dataset));
  }
  return result;
}

Json first_sums(const CaseWorld& world) {
  const auto all = world.on_workers(2, 1, [](Worker& worker) -> Json {
    auto iterator = distribute_datasets_from_function(
                        [](const InputContext& context) {
                          return Dataset::range(100)
                              .repeat()
                              .batch(context.get_per_replica_batch_size(10))
                              .shard(context.num_input_pipelines(), context.input_pipeline_id());
                        },
                        agreeing_workers(worker))
                        .iterator();
    double sum = 0;
    for (const Json& x : to_json(worker, iterator.get_next())) sum += x.get<double>();
    return sum;
  });
  return {{"chief", all[0]}, {"worker", all[1]}};
}

Json last_partial_from_function(const CaseWorld& world) {
  return second_steps(from_function_over_workers(world, [](const InputContext& context) {
    return Dataset::range(14).batch(4).shard(context.num_input_pipelines(), context.input_pipeline_id());
  }));
}

// A step's squares, the replicas' one after the other.
Json squares(const Json& step) {
  Json all = Json::array();
  for (const Json& part : step) {
    for (const Json& x : part) all.push_back(x.get<double>() * x.get<double>());
  }
  return all;
}

Json squared_steps(const CaseWorld& world, const Dataset& dataset) {
  Json result = Json::array();
  const Json steps = distribute(world, dataset)["steps"];
  for (const Json& step : steps) result.push_back(squares(step));
  return {{"steps", result}};
}

Json mean_per_replica(const CaseWorld& world) {
  Json means = Json::array();
  const Json step = distribute(world, numbers({5, 6, 7}).batch(4))["steps"][0];
  for (const Json& part : step) {
    double sum = 0;
    for (const Json& x : part) sum += x.get<double>();
    means.push_back(sum / static_cast<double>(part.size()));
  }
  return {{"per_replica", means}};
}

Json sizes_per_replica(const Json& step) {
  Json sizes = Json::array();
  for (const Json& part : step) sizes.push_back(part.size());
  return {{"per_replica", sizes}};
}

Json mixed_outputs(const CaseWorld& world) {
  Json first = Json::array(), second = Json::array();
  const Json step = distribute(world, numbers({5}).batch(2))["steps"][0];
  for (const Json& part : step) {
    first.push_back(std::vector<float>(3));
    second.push_back(squares({part}));
  }
  return {{"first", first}, {"second", second}};
}

Json from_function(const CaseWorld& world, const DatasetFromContext& function, const InputOptions& options = {}) {
  return world.on_worker([&](Worker& worker) -> Json {
    InputWorkers workers = input_workers(worker);
    workers.options = options;
    return steps_of(worker, distribute_datasets_from_function(function, workers));
  });
}

Json first_step_flat(const CaseWorld& world) {
  const Json step = distribute(world, numbers({5, 6}).batch(1, true))["steps"][0];
  Json flat = Json::array();
  for (const Json& part : step) flat.insert(flat.end(), part.begin(), part.end());
  return {{"value", flat}};
}

Json one_device(const CaseWorld& world) {
  Json context;
  const Json steps = from_function(world, [&](const InputContext& given) {
    context = to_json(given);
    return Dataset::range(10);
  });
  return {{"input_context", context}, {"steps", steps}};
}

Json replicas_not_divisible(const CaseWorld& world) {
  return world.on_workers(1, 1, [](Worker& worker) {
    InputWorkers workers = input_workers(worker, 2);
    workers.num_replicas_in_sync = 3;
    distribute_dataset(Dataset::range(8).batch(4), workers);
    return Json();
  })[0];
}

const bool added = add_cases({
    {"inp2-002", [](const CaseWorld& world) { return distribute(world, Dataset::range(10), false); }},
    {"inp2-003", [](const CaseWorld& world) { return distribute(world, Dataset::range(9).batch(2), false); }},
    {"inp2-006",
     [](const CaseWorld& world) { return distribute_over_workers(world, Dataset::range(9).batch(2, true)); }},
    {"inp2-009", batch_splitting},
    {"inp2-011", different_datasets},
    {"inp2-013", explicit_shards},
    {"inp2-016", data_sharding},
    {"inp2-017", first_sums},
    {"inp2-018",
     [](const CaseWorld& world) { return second_steps(distribute_over_workers(world, Dataset::range(14).batch(8))); }},
    {"inp2-019", last_partial_from_function},
    {"inp2-020", [](const CaseWorld& world) { return squared_steps(world, floats_5_to_8().batch(2)); }},
    {"inp2-021",
     [](const CaseWorld& world) {
       return squared_steps(world, numbers({5, 6, 7}).batch(2));
     }},
    {"inp2-022", mean_per_replica},
    {"inp2-023",
     [](const CaseWorld& world) {
       return sizes_per_replica(distribute(world, numbers({5, 6, 7}).batch(4))["steps"][0]);
     }},
    {"inp2-025", mixed_outputs},
    {"inp2-027",
     [](const CaseWorld& world) {
       return Json{{"per_replica", from_function(world, [](const InputContext&) { return floats_5_to_8(); })[0]}};
     }},
    {"inp2-030",
     [](const CaseWorld& world) {
       const auto zeros = [](const InputContext&) { return numbers(std::vector<float>(5)).batch(3); };
       return sizes_per_replica(from_function(world, zeros)[0]);
     }},
    {"inp2-032", first_step_flat},
    {"inp2-046", replicas_not_divisible},
    {"inp2-047", one_device},

    {"inp2-x01",
     [](const CaseWorld& world) { return only_replicas(distribute_over_workers(world, Dataset::range(8).batch(4))); }},
    {"inp2-x02", [](const CaseWorld& world) { return distribute(world, Dataset::range(9).batch(2, true), false); }},
    {"inp2-x03",
     [](const CaseWorld& world) {
       return world.on_worker([](Worker& worker) {
         distribute_dataset(Dataset::range(10), input_workers(worker));
         return Json();
       });
     }},
    {"inp2-x04",
     [](const CaseWorld& world) {
       return from_function_over_workers(world, [](const InputContext& context) {
         return Dataset::range(context.input_pipeline_id() == 0 ? 3 : 9).batch(2);
       });
     }},
    {"inp2-x05",
     [](const CaseWorld& world) {
       const Dataset exact = Dataset::range(7).batch(4).with_options({.auto_shard_policy = AutoShardPolicy::off});
       return distribute_over_workers(world, exact);
     }},
});

}  // namespace
}  // namespace tandem::input_v2_cases
