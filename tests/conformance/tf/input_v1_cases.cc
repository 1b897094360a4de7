#include "tests/conformance/tf/input_values.h"

namespace tandem::input_v1_cases {
namespace {

Json deal(const CaseWorld& world, const Dataset& dataset) {
  return world.on_worker([&](Worker& worker) -> Json {
    DistributedIteratorV1 iterator =
        distribute_dataset_v1([&] { return dataset; }, input_workers(worker)).make_one_shot_iterator();
    const Json steps = steps_of(worker, iterator);
    return {{"steps", steps}, {"end", error_of([&] { iterator.get_next(); })}};
  });
}

Json zipped(const CaseWorld& world) {
  const Dataset squares = Dataset::range(10).map([](const Element& x) -> Element {
    const auto number = static_cast<std::int64_t>(x.tensor().number());
    return HostTensor::scalar(number * number);
  });
  return deal(world, Dataset::zip({Dataset::range(10), squares}));
}

Json initialised_again(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    DistributedIteratorV1 iterator =
        DistributedDatasetV1(Dataset::range(10), input_workers(worker)).make_initializable_iterator();
    const std::size_t consumed = steps_of(worker, iterator).size();
    const Json after_end = error_of([&] { iterator.get_next(); });
    iterator.initialize();
    return {{"consumed", consumed}, {"after_end", after_end}, {"after_reinit", steps_of(worker, iterator).size()}};
  });
}

Json wrong_worker_maps(const CaseWorld& world) {
  return world.on_workers(1, 2, [](Worker& worker) -> Json {
    const auto devices = devices_of(worker);
    const auto function = [] { return Dataset::range(8); };
    const WorkerDeviceMap both = {{"w1", {devices[0]}}, {"w2", {devices[1]}}};
    const DistributedDatasetV1 dataset(Dataset::range(8), input_workers(worker));
    MultiWorkerIteratorV1 twice =
        MultiWorkerDatasetV1(function, worker, {{"w1", {devices[0], devices[0]}}}).make_initializable_iterator();
    const Json missing = error_of([&] {
      MultiWorkerIteratorV1::Iterators one;
      one.emplace_back("w1", dataset.make_one_shot_iterator());
      MultiWorkerIteratorV1(std::move(one), both);
    });
    return {{"each", {missing, error_of([&] { twice.get_next(); })}}};
  })[0];
}

// Every worker's values are a full copy, or a part of the files.
Json several_workers(const CaseWorld& world) {
  return world.on_workers(1, 2, [](Worker& worker) -> Json {
    const auto devices = devices_of(worker);
    const auto read = [](const std::string& name) { return std::vector<Element>(2, HostTensor::scalar(name)); };
    const auto function = [&] { return Dataset::read_files({"a", "b"}, read); };
    const WorkerDeviceMap map = {{"w1", {devices[0]}}, {"w2", {devices[1]}}};
    Json result;
    for (const bool shards : {false, true}) {
      MultiWorkerIteratorV1 iterator =
          MultiWorkerDatasetV1(function, worker, map, shards).make_initializable_iterator();
      result[shards ? "sharded" : "copied"] = step_json(worker, iterator.get_next(), 2);
    }
    return result;
  })[0];
}

std::vector<float> rows_of_numbers() {
  return {1, 2, 6, 12, 2, 4, 5, 10, 3, 6, 4, 8};
}

// Both columns of a step, the replicas' rows one after the other.
Json numpy_dataset(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    const Element nest = Element::tuple(
        {HostTensor({6, 2}, rows_of_numbers()), HostTensor::vector(std::vector<float>{5, 4, 3, 2, 1, 0})});
    auto iterator =
        distribute_dataset(Dataset::from_tensor_slices(nest).repeat(2).batch(6), input_workers(worker)).iterator();
    const auto epoch = [&] {
      Json x = Json::array(), y = Json::array();
      for (const Json& part : step_json(worker, iterator.get_next(), worker.devices().size())) {
        x.insert(x.end(), part[0].begin(), part[0].end());
        y.insert(y.end(), part[1].begin(), part[1].end());
      }
      return Json{{"x", x}, {"y", y}};
    };
    Json result = {{"epoch1", epoch()}};
    result["epoch2"] = epoch();
    result["third"] = error_of([&] { iterator.get_next(); });
    return result;
  });
}

Json input_function(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    Json context;
    DistributedIteratorV1 iterator = make_input_fn_iterator(
        [&](const InputContext& given) {
          context = to_json(given);
          return Dataset::range(10);
        },
        input_workers(worker));
    const Json steps = steps_of(worker, iterator);
    iterator.initialize();
    const Json again = steps_of(worker, iterator);
    return {{"input_context", context}, {"steps", steps}, {"after_reinit", again}};
  });
}

Json input_functions_of_workers(const CaseWorld& world) {
  return {{"workers", world.on_workers(world.workers(), 2, [](Worker& worker) -> Json {
             Json context;
             DistributedIteratorV1 iterator = make_input_fn_iterator(
                 [&](const InputContext& given) {
                   context = to_json(given);
                   return Dataset::range(20);
                 },
                 input_workers(worker, worker.count(), worker.index()));
             return {{"input_context", context}, {"steps", steps_of(worker, iterator)}};
           })}};
}

// A function is called once for every replica of every step.
Json called_per_replica(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    std::int64_t calls = 0;
    DistributedIteratorV1 iterator = make_input_fn_iterator(
        [&](const InputContext&) {
          return ElementFunction([&calls]() -> Element { return HostTensor::scalar(calls++); });
        },
        input_workers(worker));
    const Json first = step_json(worker, iterator.get_next(), 2);
    const std::int64_t calls_of_one = calls;
    return {{"first", first}, {"calls", calls_of_one}, {"second", step_json(worker, iterator.get_next(), 2)}};
  });
}

Json refused(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    const InputWorkers workers = input_workers(worker);
    const auto range = [](const InputContext&) { return Dataset::range(10); };
    const auto nothing = [](const InputContext&) { return ElementFunction(); };
    return {{"each",
             {error_of([&] { distribute_dataset_v1([] { return std::nullopt; }, workers); }),
              error_of([&] { make_input_fn_iterator(nothing, workers); }),
              error_of([&] { make_input_fn_iterator(range, workers, InputReplicationMode::per_replica); })}}};
  });
}

const bool added = add_cases({
    {"inp1-002", [](const CaseWorld& world) { return deal(world, Dataset::range(10)); }},
    {"inp1-003", zipped},
    {"inp1-004", [](const CaseWorld& world) { return deal(world, Dataset::range(11)); }},
    {"inp1-005", initialised_again},
    {"inp1-006", wrong_worker_maps},
    {"inp1-008", numpy_dataset},
    {"inp1-009", input_function},
    {"inp1-012", input_functions_of_workers},
    {"inp1-x01", refused},
    {"inp1-x02", called_per_replica},
    {"inp1-x03", several_workers},
    {"inp1-x04", [](const CaseWorld& world) { return deal(world, Dataset::range(10).batch(4)); }},
});

}  // namespace
}  // namespace tandem::input_v1_cases
