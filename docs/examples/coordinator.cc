// A coordinator has its workers train by a function that each of them runs in its own process:
//
//   tandem-coordinator cpu                            all in one process
//   mpirun -n 4 tandem-coordinator mpi                a chief, two workers and a parameter server
#include <cstdio>

#include "engine/engine.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/servers/cluster_coordinator.h"
#include "strategies/servers/worker_functions.h"
#include "strategies/strategy/arithmetic.h"

namespace {

using namespace tandem;

// One step towards the weight 3, from this worker's data.
Value train(ParameterServerStrategyV2& strategy, const Value::Parts& arguments) {
  const double x = 1 + strategy.scheduled_worker();
  const auto step = [x](const Value::Parts& mine) -> Value {
    Variable& weight = *mine[0].variable();
    const double learning_rate = mine[1].number();
    weight.assign_sub((Value(weight.value()) - 3.0) * (learning_rate * 2 * x * x));
    return {};
  };
  return strategy.run(step, arguments);
}

void coordinate(Worker& chief, const char* engine) {
  ParameterServerStrategyV2 strategy(chief);
  const auto weight = strategy.create_variable({.name = "weight"});
  ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
    for (int i = 0; i < 100; ++i) coordinator.schedule("train", {weight, 0.05});
    coordinator.join();
  });
  std::printf("%s: weight %.1f after %d updates\n", engine, host_number(chief, weight->read()),
              static_cast<int>(strategy.staleness().updates));
}

}  // namespace

int main(int count, char** arguments) {
  const char* const engine = count > 1 ? arguments[1] : "cpu";
  WorkerFunctions functions;
  functions.add("train", train);

  EngineOptions options;
  options.workers = {{.job = "chief"}, {.job = "worker"}, {.job = "worker", .task = 1}, {.job = "ps"}};
  open_engine(engine, std::move(options))->run([&](Worker& worker) {
    if (worker.job() != "chief") return functions.serve(worker);
    coordinate(worker, engine);
  });
}
