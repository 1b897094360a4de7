// Workers that add ones to a variable of a parameter server, each at a pace of its own, for a test that kills some of
// them meanwhile. An update is several ops on two tensors. The first worker looks at what is left in the end: every
// update is there as a whole or not at all, each of the workers that are left has all of its own, and what the killed
// ones have issued is counted exactly. In a cluster with a chief, its coordinator schedules as many functions instead,
// each of which runs at least once. Arguments: steps, milliseconds between two of them, and `ends` for a
// job that does not go on without a worker.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>

#include "engine/engine.h"
#include "engine/faults/faults.h"
#include "engine/launched_job.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/tf_config_resolver.h"
#include "strategies/servers/cluster_coordinator.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/replica_context.h"

namespace {

using namespace tandem;

constexpr std::int64_t kElements = 60'000;
constexpr int kOpsOfUpdate = 8;
constexpr std::chrono::microseconds kBetweenOps(200);

std::vector<WorkerSpec> workers_of_launch(int ranks) {
  std::vector<WorkerSpec> workers;
  for (int task = 0; task + 1 < ranks; ++task) workers.push_back({.job = "worker", .task = task});
  workers.push_back({.job = "ps", .task = 0});
  return workers;
}

std::vector<WorkerSpec> workers() {
  const int launched = rank_of_process().count;
  if (launched > 1) return workers_of_launch(launched);
  const TfConfigResolver resolver;
  start_task_of(resolver);
  return workers_of(resolver.cluster_spec(), DeviceType::cpu, 1);
}

struct Variables {
  std::shared_ptr<Variable> total, slot;
};

void add_ones(Strategy& strategy, const Variables& variables) {
  strategy.run([&](const Value::Parts&) -> Value {
    Device& device = get_replica_context()->device();
    const Tensor ones = device.allocate(DType::f32, {kElements});
    device.compute_stream().launch(op::fill(ones, 1));
    variables.total->value();
    get_replica_context()->merge_call(
        [&](Strategy& merging, const Value::Parts& merged) -> Value {
          return merging.extended().update(variables.total,
                                           [&](Variable& total, const Value::Parts& arguments) -> Value {
                                             Stream& server = total.handle().device().compute_stream();
                                             for (int i = 0; i < kOpsOfUpdate; ++i) {
                                               const Tensor& to =
                                                   i % 2 == 0 ? variables.slot->handle() : total.handle();
                                               server.launch(op::scale_add(to, arguments.front().tensor(), 1, 1));
                                               std::this_thread::sleep_for(kBetweenOps);  // many kills fall in between
                                             }
                                             return {};
                                           },
                                           {merged.front()});
        },
        {ones});
    return {};
  });
}

// How many whole updates the server has been given.
std::int64_t updates_issued(Worker& worker) {
  const auto shared =
      worker.shared().tensor("variable total", []() -> Tensor { throw RunError("the variable is not there"); });
  const std::lock_guard lock(*shared);
  return shared->version();
}

void check(Worker& worker, const Variables& variables, int steps) {
  int left = 0, killed = 0;
  for (int i = 0; i < worker.count(); ++i) {
    if (worker.cluster()[static_cast<std::size_t>(i)].job == "ps") continue;
    worker.is_lost(i) ? ++killed : ++left;
  }
  const auto issued = static_cast<float>(updates_issued(worker));
  const float least = static_cast<float>(left * steps), most = static_cast<float>((left + killed) * steps);
  if (issued < least || issued > most) throw RunError(fmt::format("{} updates of {} to {}", issued, least, most));
  for (const auto& variable : {variables.total, variables.slot}) {
    const Tensor read = variable->read();
    worker.cpu().synchronize();
    for (const float value : read.values<float>()) {
      if (value == issued * kOpsOfUpdate / 2) continue;
      throw RunError(fmt::format("{} has {} after {} updates", variable->name(), value, issued));
    }
  }
  std::printf("%d killed, %d left, %g updates\n", killed, left, issued);
}

// Waits until all that are left have said that they have ended.
void await_others(Worker& worker, const std::shared_ptr<Variable>& ended) {
  const auto has_ended = [&](int i, std::span<const float> said) {
    const bool is_server = worker.cluster()[static_cast<std::size_t>(i)].job == "ps";
    return is_server || worker.is_lost(i) || said[static_cast<std::size_t>(i)] > 0;
  };
  for (bool have_all = false; !have_all;) {
    const Tensor read = ended->read();
    worker.cpu().synchronize();
    have_all = true;
    for (int i = 0; i < worker.count(); ++i) have_all = have_all && has_ended(i, read.values<float>());
    if (!have_all) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void say_ended(Worker& worker, const std::shared_ptr<Variable>& ended) {
  const Tensor mine = worker.cpu().allocate(DType::f32, {worker.count()});
  std::ranges::fill(mine.values<float>(), 0.0F);
  mine.values<float>()[static_cast<std::size_t>(worker.index())] = 1;
  ended->assign_add(mine);
}

void train(Worker& worker, int steps, std::chrono::milliseconds pause) {
  if (worker.job() == "ps") return;
  ParameterServerStrategy strategy(worker);
  Variables variables;
  variables.total = strategy.create_variable({.name = "total", .shape = {kElements}, .initial_value = {}});
  variables.slot = strategy.create_variable({.name = "slot", .shape = {kElements}, .initial_value = {}});
  const auto ended = strategy.create_variable({.name = "ended", .shape = {worker.count()}, .initial_value = {}});
  std::fprintf(stderr, "begins\n");
  for (int step = 0; step < steps; ++step) {
    worker.begin_step(step);
    add_ones(strategy, variables);
    worker.end_step();
    std::this_thread::sleep_for(pause);
  }
  say_ended(worker, ended);
  if (worker.index() > 0) return;
  await_others(worker, ended);
  check(worker, variables, steps);
}

// Returns what a function has made on its worker, which is lost with it.
Value function_of(ParameterServerStrategyV2& strategy, const std::shared_ptr<Variable>& total) {
  return strategy.run([&](const Value::Parts&) -> Value {
    Device& device = get_replica_context()->device();
    const Tensor ones = device.allocate(DType::f32, {kElements});
    device.compute_stream().launch(op::fill(ones, 1));
    total->assign_add(ones);
    return {};
  });
}

void coordinate(Worker& chief, int functions, std::chrono::milliseconds pause) {
  ParameterServerStrategyV2 strategy(chief);
  const auto total = strategy.create_variable({.name = "total", .shape = {kElements}, .initial_value = {}});
  std::atomic<int> begun = 0;
  std::fprintf(stderr, "begins\n");
  ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
    for (int i = 0; i < functions; ++i) {
      coordinator.schedule([&]() -> Value {
        ++begun;
        return function_of(strategy, total);
      });
      std::this_thread::sleep_for(pause);
    }
    coordinator.join();
  });
  const Tensor read = total->read();
  chief.cpu().synchronize();
  const float first = read.values<float>().front();
  for (const float value : read.values<float>()) {
    if (value == first && value >= static_cast<float>(functions) && value <= static_cast<float>(begun)) continue;
    throw RunError(fmt::format("total has {} after {} functions, begun {} times", value, functions, begun.load()));
  }
  int killed = 0;
  for (int i = 0; i < chief.count(); ++i) killed += chief.is_lost(i) ? 1 : 0;
  std::printf("%d killed, %d functions begun %d times\n", killed, functions, begun.load());
}

void run(Worker& worker, int steps, std::chrono::milliseconds pause) {
  if (worker.cluster().front().job != "chief") return train(worker, steps, pause);
  if (worker.index() == 0) return coordinate(worker, steps, pause);
  std::fprintf(stderr, "begins\n");
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const int steps = count > 1 ? std::atoi(arguments[1]) : 100;
    const std::chrono::milliseconds pause(count > 2 ? std::atoi(arguments[2]) : 0);
    const bool goes_on = count <= 3 || std::string_view(arguments[3]) != "ends";
    EngineOptions options;
    options.workers = workers();
    options.faults = std::make_shared<const Faults>(Faults{.goes_on_without_lost = goes_on});
    open_engine("mpi", std::move(options))->run([&](Worker& worker) { run(worker, steps, pause); });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
