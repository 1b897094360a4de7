// Area "cross-device-ops": a collective that not all workers join ends at its deadline.
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/tf/stage.h"

namespace tandem::timeout_cases {
namespace {

// Worker 0 of two calls `launch` and waits for its device; worker 1 does not join.
CaseFunction alone(std::function<void(Stage&)> launch) {
  return [launch = std::move(launch)](const CaseWorld& world) -> Json {
    world.on_workers(2, 1, [&](Worker& worker) -> Json {
      MultiWorkerMirroredStrategy strategy(
          worker, {.communication = {.bytes_per_pack = 0, .timeout_seconds = 1, .implementation = {}}});
      if (worker.index() == 1) return nullptr;
      Stage stage(worker, strategy, world.spec());
      launch(stage);
      stage.device(0).synchronize();
      return nullptr;
    });
    return "no error";
  };
}

Value one(Stage& stage) {
  return Value(stage.tensor(stage.device(0), {1}, {1}));
}

const bool added = add_cases({
    {"xdo-col-timeout",
     alone([](Stage& stage) { stage.strategy.extended().reduce_to(ReduceOp::sum, one(stage), stage.device(0)); })},
    {"xdo-col-timeout-batch", alone([](Stage& stage) {
       stage.strategy.extended().batch_reduce_to(ReduceOp::sum,
                                                 {{one(stage), stage.device(0)}, {one(stage), stage.device(0)}});
     })},
    {"xdo-col-timeout-sparse", alone([](Stage& stage) {
       const IndexedSlices slices = stage.slices(stage.device(0), {0}, {1, 1}, {1}, {5, 1});
       stage.strategy.extended().reduce_to(ReduceOp::sum, Value(slices), stage.device(0));
     })},
});

}  // namespace
}  // namespace tandem::timeout_cases
