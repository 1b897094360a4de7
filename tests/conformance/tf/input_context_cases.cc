#include "strategies/input/input_context.h"
#include "tests/conformance/tf/input_values.h"

namespace tandem::input_context_cases {
namespace {

Json batch_sizes(const CaseWorld&) {
  const InputContext context(2, 1, 6);
  return {{"first", context.get_per_replica_batch_size(12)},
          {"second", error_of([&] { context.get_per_replica_batch_size(13); })}};
}

// range(100) on worker 1 of a parameter server cluster, or on the only worker.
Json input_of_worker(const CaseWorld& world) {
  const int workers = world.workers(), pipeline = workers > 1 ? 1 : 0;
  return world.on_workers(workers, world.replicas(), [&](Worker& worker) -> Json {
    if (worker.index() != pipeline) return {};
    // Replicas are in sync within a worker only.
    InputWorkers input = input_workers(worker, workers, pipeline);
    input.num_replicas_in_sync = world.replicas();
    Json context;
    DistributedIteratorV1 iterator = make_input_fn_iterator(
        [&](const InputContext& given) {
          context = to_json(given);
          return Dataset::range(100);
        },
        input);
    const Json steps = steps_of(worker, iterator);
    return {{"input_context", context},
            {"first_steps", {steps[0], steps[1]}},
            {"steps", steps.size()},
            {"end", error_of([&] { iterator.get_next(); })}};
  })[static_cast<std::size_t>(pipeline)];
}

const bool added = add_cases({
    {"ctx-024", batch_sizes},
    {"ctx-025", [](const CaseWorld&) { return to_json(InputContext(2, 1, 6)); }},
    {"ctx-026",
     [](const CaseWorld&) {
       return Json{{"texts", {InputContext(1, 0, 42).text(), InputContext(3, 1, 42).text()}}};
     }},
    {"ps-in-1", input_of_worker},
    {"ps-in-2", input_of_worker},
    {"ps-inl-1", input_of_worker},
    {"ps-inl-2", input_of_worker},
});

}  // namespace
}  // namespace tandem::input_context_cases
