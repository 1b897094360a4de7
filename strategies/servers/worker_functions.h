// Functions that a ClusterCoordinator schedules by name and that run in the workers' own processes: their work is
// issued where the devices are, and only arguments and results travel. Every process of the job registers the same
// functions; its program then serves them where it is a worker's.
//
//   WorkerFunctions functions;
//   functions.add("train", [](ParameterServerStrategyV2& strategy, const Value::Parts& arguments) { ... });
//   if (worker.job() != "chief") return functions.serve(worker);
//   ParameterServerStrategyV2 strategy(worker);
//   ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
//     coordinator.schedule("train", {variable, 0.1});
//   });
//
// Threads: add() before the run; serve() in the worker's program.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "strategies/servers/parameter_server_v2.h"

namespace tandem {

class WorkerFunctions {
 public:
  // Is called in the strategy's cross-replica context, and run() uses the worker's devices. A tensor among the
  // arguments is on the worker's first device, or on its replica's in a value per replica; a variable is that of the
  // coordinator's program. The workers of one process call the same function, at the same time: what belongs to a
  // worker goes into SharedState::kept(), not into what the function captures.
  using Function = std::function<Value(ParameterServerStrategyV2& strategy, const Value::Parts& arguments)>;

  // ValueError for a name that is taken.
  void add(std::string name, Function function);

  // Runs what coordinators schedule on this worker, one function after another, until their strategy is destroyed; a
  // program with several strategies one after the other serves once for each. An exception of a function goes to the
  // coordinator: those of strategies/base/errors.h as they are, others as RuntimeError. Returns immediately in programs
  // of other jobs than "worker".
  void serve(Worker& worker) const;
  // Serves the strategies of any number of coordinators, one after the other, until the job ends
  // (Worker::await_end_of_job()). In programs of other jobs than "worker" it only waits for that.
  void serve_until_end_of_job(Worker& worker) const;

 private:
  bool serve_strategy(Worker& worker) const;  // false: the job has ended
  const Function& function(std::string_view name, const Worker& worker) const;

  std::map<std::string, Function, std::less<>> functions_;
};

}  // namespace tandem
