// Distributed iterators: options, ends, static shapes, contexts, and iterating again.
#include "strategies/types/mirrored.h"
#include "tests/conformance/tf/input_values.h"

namespace tandem::input_v2_iterator_cases {
namespace {

Json loops_with_a_variable(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Scope scope = strategy.scope();
    const auto a = strategy.create_variable({.name = "a",
                                             .initial_value = [](std::int64_t) { return 1.0; },
                                             .aggregation = VariableAggregation::only_first_replica});
    const DistributedDataset dataset = distribute_dataset(numbers({5, 6, 7, 8}).batch(2), input_workers(worker));
    double product = 2;
    int steps = 0;
    for (auto iterator = dataset.iterator(); const auto x = iterator.next(); ++steps) {
      product *= to_json(worker, strategy.reduce(ReduceOp::mean, *x, 0)).get<double>();
    }
    for (auto iterator = dataset.iterator(); iterator.next();) {
      strategy.run([&](const Value::Parts&) {
        a->assign_add(Value::literal(1));
        return Value();
      });
    }
    return {{"steps", steps}, {"product", product}, {"a", to_json(worker, a->components()[0])}};
  });
}

Json inside_run(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    MirroredStrategy strategy(worker, devices_of(worker));
    auto iterator = distribute_dataset(Dataset::range(10).batch(2), input_workers(worker)).iterator();
    const Json inside = error_of([&] {
      strategy.run([&](const Value::Parts&) {
        iterator.next();
        return Value();
      });
    });
    return {{"inside_run", inside}, {"steps", steps_of(worker, std::move(iterator))}};
  });
}

std::pair<Json, Json> iterate_twice(Worker& worker, const Dataset& dataset) {
  const DistributedDataset distributed = distribute_dataset(dataset, input_workers(worker));
  const Json first = steps_of(worker, distributed);
  return {first, steps_of(worker, distributed)};
}

Json cached(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    const auto [first, second] = iterate_twice(worker, Dataset::range(16).shuffle(1).cache().batch(4));
    return {{"second_equals_first", first == second}};
  });
}

Json shuffled(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) {
    Json result;
    for (const bool reshuffles : {false, true}) {
      const auto [first, second] = iterate_twice(worker, Dataset::range(12).shuffle(1, reshuffles).batch(4));
      result[reshuffles ? "reshuffle_true" : "reshuffle_false"] = first == second ? "same order" : "different order";
    }
    return result;
  });
}

Json with_options(const CaseWorld& world, const DatasetFromContext& function, const InputOptions& options) {
  return world.on_worker([&](Worker& worker) {
    InputWorkers workers = input_workers(worker);
    workers.options = options;
    return steps_of(worker, distribute_datasets_from_function(function, workers));
  });
}

Json per_worker_rows(const CaseWorld& world) {
  const auto function = [](const InputContext& context) {
    std::vector<float> values(10);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i + 1) * static_cast<float>(context.input_pipeline_id() + 1);
    }
    return Dataset::from_tensor_slices(HostTensor({2, 5}, std::move(values)));
  };
  const InputOptions options{.experimental_replication_mode = InputReplicationMode::per_worker};
  return {{"first_step", with_options(world, function, options)[0]}};
}

Dataset multiples(const InputContext& context) {
  return Dataset::range(1, 10).map([factor = context.input_pipeline_id() + 1](const Element& x) -> Element {
    return HostTensor::scalar(static_cast<std::int64_t>(x.tensor().number()) * factor);
  });
}

Json per_replica_values(const CaseWorld& world) {
  return {
      {"steps", with_options(world, multiples, {.experimental_replication_mode = InputReplicationMode::per_replica})}};
}

Json invalid_placements(const CaseWorld& world) {
  const InputOptions per_worker{.experimental_place_dataset_on_device = true};
  const InputOptions fetched{.experimental_fetch_to_device = true,
                             .experimental_replication_mode = InputReplicationMode::per_replica,
                             .experimental_place_dataset_on_device = true};
  return {{"each", {error_of([&] { with_options(world, multiples, per_worker); }), error_of([&] {
                      with_options(world, multiples, fetched);
                    })}}};
}

Json per_replica_of_a_dataset(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) {
    InputWorkers workers = input_workers(worker);
    workers.options.experimental_replication_mode = InputReplicationMode::per_replica;
    distribute_dataset(Dataset::range(10).batch(2), workers);
    return Json();
  });
}

Json optional_at_the_end(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    auto iterator = distribute_dataset(Dataset::range(10).batch(2), input_workers(worker)).iterator();
    while (iterator.get_next_as_optional().has_value()) {
    }
    const OptionalValue after = iterator.get_next_as_optional();
    return {{"has_value_after_end", after.has_value()}, {"value", error_of([&] { after.get_value(); })}};
  });
}

// 8 rows of features and labels.
Dataset examples() {
  return Dataset::from_tensor_slices(Element::map({{"feature", HostTensor({8, 10}, std::vector<float>(80, 1))},
                                                   {"label", HostTensor::vector(std::vector<float>(8, 1))}}));
}

Json static_shapes(const CaseWorld& world, const Dataset& dataset) {
  return world.on_worker([&](Worker& worker) -> Json {
    const ElementSpec spec = distribute_dataset(dataset, input_workers(worker)).optional_element_spec();
    return {{"static_feature_shape", shape_json(spec.components[0])},
            {"static_label_shape", shape_json(spec.components[1])}};
  });
}

Json optional_pads(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    auto iterator = distribute_dataset(Dataset::range(6).batch(2, true), input_workers(worker, 1, 0, false)).iterator();
    Json steps = Json::array();
    for (;;) {
      const OptionalValue step = iterator.get_next_as_optional();
      if (!step.has_value()) return {{"steps", steps}};
      steps.push_back(step_json(worker, step.get_value(), 2));
    }
  });
}

Json contexts_per_replica(const CaseWorld& world) {
  Json contexts = Json::array();
  const auto function = [&](const InputContext& context) {
    contexts.push_back(to_json(context));
    return Dataset::range(2);
  };
  with_options(world, function, {.experimental_replication_mode = InputReplicationMode::per_replica});
  return {{"input_contexts", contexts}};
}

Json kept_on_the_host(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    InputWorkers workers = input_workers(worker);
    workers.options.experimental_fetch_to_device = false;
    auto iterator = distribute_dataset(Dataset::range(4).batch(4), workers).iterator();
    const Value step = iterator.get_next();
    bool on_host = true;
    for (const Value& part : step.parts()) on_host = on_host && &part.tensor().device() == &worker.cpu();
    return {{"on_host", on_host}, {"step", step_json(worker, step, 2)}};
  });
}

Json nested_texts(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    const Dataset dataset = Dataset::from_tensor_slices(
        Element::map({{"name", HostTensor::vector(std::vector<std::string>{"a", "b", "c"})},
                      {"pair", Element::tuple({HostTensor::vector(std::vector<std::int32_t>{1, 2, 3}),
                                               HostTensor::vector(std::vector<double>{1.5, 2.5, 3.5})})}}));
    return {{"steps", steps_of(worker, distribute_dataset(dataset.batch(4), input_workers(worker)))}};
  });
}

const bool added = add_cases({
    {"inp2-026", loops_with_a_variable},
    {"inp2-034", inside_run},
    {"inp2-035", cached},
    {"inp2-036", shuffled},
    {"inp2-037", per_worker_rows},
    {"inp2-038", per_replica_values},
    {"inp2-039", invalid_placements},
    {"inp2-040", per_replica_of_a_dataset},
    {"inp2-041", optional_at_the_end},
    {"inp2-044", [](const CaseWorld& world) { return static_shapes(world, examples().batch(8, true).repeat()); }},
    {"inp2-x06", [](const CaseWorld& world) { return static_shapes(world, examples().batch(8, true)); }},
    {"inp2-x07", optional_pads},
    {"inp2-x08", contexts_per_replica},
    {"inp2-x09", kept_on_the_host},
    {"inp2-x10", nested_texts},
});

}  // namespace
}  // namespace tandem::input_v2_iterator_cases
