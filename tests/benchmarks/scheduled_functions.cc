// What a function of a ClusterCoordinator costs, scheduled as a C++ function and by name:
// `mpirun -n 3 scheduled_functions` or, in one process, `scheduled_functions cpu`. The chief prints the medians.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "engine/engine.h"
#include "strategies/servers/cluster_coordinator.h"
#include "strategies/servers/worker_functions.h"
#include "strategies/strategy/replica_context.h"

namespace tandem {
namespace {

constexpr int kSamples = 201, kWarmUp = 20;

// A replica that issues so many small operations to its device.
Value issue(ParameterServerStrategyV2& strategy, int operations) {
  return strategy.run([operations](const Value::Parts&) -> Value {
    Device& device = get_replica_context()->device();
    const Tensor tensor = device.allocate(DType::f32, {16});
    for (int i = 0; i < operations; ++i) device.compute_stream().launch(op::fill(tensor, i));
    return {};
  });
}

double median_us(Worker& worker, const std::function<RemoteValue()>& schedule) {
  std::vector<double> times;
  for (int i = 0; i < kWarmUp + kSamples; ++i) {
    const Nanoseconds start = worker.now();
    schedule().fetch();
    if (i >= kWarmUp) times.push_back(static_cast<double>(worker.now() - start) * 1e-3);
  }
  std::nth_element(times.begin(), times.begin() + kSamples / 2, times.end());
  return times[kSamples / 2];
}

void measure(Worker& chief) {
  ParameterServerStrategyV2 strategy(chief);
  ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
    for (const int operations : {1, 10, 100, 1000}) {
      const double closure =
          median_us(chief, [&] { return coordinator.schedule([&] { return issue(strategy, operations); }); });
      const double by_name = median_us(chief, [&] { return coordinator.schedule("issue", {operations}); });
      std::printf("%4d operations: C++ function %.1f us, by name %.1f us\n", operations, closure, by_name);
    }
  });
}

int run(const char* engine) {
  WorkerFunctions functions;
  functions.add("issue", [](ParameterServerStrategyV2& strategy, const Value::Parts& arguments) {
    return issue(strategy, static_cast<int>(arguments[0].number()));
  });
  EngineOptions options;
  options.workers = {{.job = "chief"}, {.job = "worker"}, {.job = "ps"}};
  options.records = RecordLevel::steps;
  open_engine(engine, std::move(options))->run([&](Worker& worker) {
    if (worker.job() != "chief") return functions.serve(worker);
    measure(worker);
  });
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int count, char** arguments) {
  return tandem::run(count > 1 ? arguments[1] : "mpi");
}
