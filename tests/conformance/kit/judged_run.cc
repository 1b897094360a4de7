#include "tests/conformance/kit/judged_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/replica_context.h"

namespace tandem {
namespace {

// The replicas' shares of w - 8.
Value gradient_share(int replicas, Variable& w) {
  Device& device = get_replica_context()->device();
  const double share = 1.0 / replicas;
  Tensor gradient = device.allocate(DType::f32, {1});
  device.compute_stream().launch(op::fill(gradient, -8 * share));
  device.compute_stream().launch(op::scale_add(gradient, w.value(), share, 1));
  return gradient;
}

Value halve_and_subtract(Variable& w, const Value::Parts& sum) {
  w.handle().device().compute_stream().launch(op::scale_add(w.handle(), sum[0].tensor(), -0.5, 1));
  return {};
}

std::string names_of(const std::vector<Device*>& devices) {
  std::string names;
  for (const Device* device : devices) names += (names.empty() ? "" : ", ") + device->id().text();
  return names;
}

// One step: the gradients are added on their way to the variable's devices and then applied to its components.
class Step {
 public:
  Step(Judge& judge, Worker& worker, std::shared_ptr<Variable> w, std::string name)
      : judge_(judge), worker_(worker), w_(std::move(w)), name_(std::move(name)) {}

  // `expected_sum`: of the gradients; null where it is not judged.
  void make(Strategy& strategy, const double* expected_sum) {
    judge_.asks("run() in " + name_, "runs the function in every replica and lets their merge_calls meet");
    strategy.run([&](const Value::Parts&) {
      get_replica_context()->merge_call(
          [&](Strategy& merging, const Value::Parts& gradients) {
            const Value sum = reduced(merging, gradients[0], expected_sum);
            judge_.asks("update() of variable 'w' with half of the sum of the gradients in " + name_,
                        "calls the function once for each component of the variable, with that component's part of the "
                        "argument");
            merging.extended().update(w_, halve_and_subtract, {sum});
            return Value();
          },
          {gradient_share(judge_.replicas(), *w_)});
      return Value();
    });
  }

 private:
  Value reduced(Strategy& merging, const Value& gradients, const double* expected) {
    judge_.asks(
        "begin_batch_reduce_to(SUM) of the gradients (to variable 'w') in " + name_,
        "combines the values of all replicas, each once, and returns the result on every device of the variable");
    Value sum = merging.extended().begin_batch_reduce_to(ReduceOp::sum, {{gradients, w_}}).wait().front();
    const Value::Parts bare = {sum};
    std::vector<Device*> devices;
    ByReplica found;
    for (const Value& part : sum.is_distributed() ? sum.parts() : bare) {
      devices.push_back(&part.tensor().device());
      // What is under way to a server is there when the server executes the update.
      const bool is_here = part.tensor().device().worker() == worker_.index();
      if (expected && is_here && !judge_.has_failed()) found.push_back(host_values(worker_, part.tensor()));
    }
    if (judge_.has_failed()) return sum;
    if (!judge_.expect_text("the devices of the result", names_of(devices), names_of(w_->devices()))) return sum;
    if (expected) judge_.expect_by_replica("the sum of the gradients", found, ByReplica(found.size(), {*expected}));
    return sum;
  }

  Judge& judge_;
  Worker& worker_;
  std::shared_ptr<Variable> w_;
  std::string name_;
};

}  // namespace

Timeline run_strategy(const StrategyUnderTest& tested, const World& world,
                      const std::function<void(Worker& worker, Strategy& strategy)>& program,
                      std::shared_ptr<const Faults> faults) {
  EngineOptions options = world_options(world, tested.workers + tested.servers, tested.local_replicas());
  for (int server = 0; server < tested.servers; ++server) {
    WorkerSpec& spec = options.workers[static_cast<std::size_t>(tested.workers + server)];
    spec.job = "ps";
    spec.task = server;
    spec.device_count = 0;
  }
  options.faults = std::move(faults);
  return open_engine(world.engine, std::move(options))->run([&](Worker& worker) {
    if (worker.job() == "ps") return;
    const std::unique_ptr<Strategy> strategy = make_strategy(tested.traits.name, worker, tested.traits.options);
    program(worker, *strategy);
  });
}

void run_judged(const StrategyUnderTest& tested, const JudgedProgram& program) {
  RunCalls calls;
  try {
    run_strategy(tested, tested.world, [&](Worker& worker, Strategy& strategy) {
      Judge judge(tested, worker, calls);
      program(judge, worker, strategy);
    });
  } catch (const std::exception& error) {
    ADD_FAILURE() << calls.message_of_error(error.what(), testing::PrintToString(tested));
  }
}

ByReplica components_of(Worker& worker, const Variable& variable) {
  ByReplica components;
  for (const Tensor& component : variable.components()) components.push_back(host_values(worker, component));
  return components;
}

Numbers descend(Judge& judge, Worker& worker, Strategy& strategy, const Descent& descent) {
  const auto w = strategy.create_variable({.name = "w", .shape = {1}, .aggregation = VariableAggregation::sum});
  Numbers path;
  double expected = 0;
  for (int step = 0; step < descent.steps; ++step) {
    const std::string name =
        fmt::format("step {} of {} of gradient descent on (w - 8)^2 / 2 with rate 1/2", step + 1, descent.steps);
    const double sum = expected - 8;
    Step(judge, worker, w, name).make(strategy, descent.is_exact ? &sum : nullptr);
    expected -= sum / 2;
    path.push_back(host_values(worker, w->read()).at(0));
    if (!descent.is_exact || judge.has_failed()) continue;
    const ByReplica components = components_of(worker, *w);
    judge.expect_by_replica("the component of variable 'w'", components, ByReplica(components.size(), {expected}));
  }
  if (judge.has_failed()) return path;
  judge.asks(fmt::format("read() of variable 'w' after {} steps of gradient descent on (w - 8)^2 / 2 with rate 1/2",
                         descent.steps),
             "trains as one device does, or converges to the same minimum, w = 8");
  if (std::abs(path.back() - 8) > 0.01) {
    judge.fail(
        fmt::format("found {:.6g}, must be within 0.01 of 8; after each step: {}", path.back(), numbers_text(path)));
  }
  return path;
}

void expect_same_calls(const StrategyUnderTest& tested, const std::string& program, const std::vector<SeenCall>& found,
                       const std::vector<SeenCall>& expected, const std::string& other_run) {
  for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    const SeenCall none{.call = "no call"};
    const SeenCall& here = i < found.size() ? found[i] : none;
    const SeenCall& there = i < expected.size() ? expected[i] : none;
    if (here == there) continue;
    const std::string problem =
        fmt::format("found {}, must be {} as {}", numbers_text(here.values), numbers_text(there.values), other_run);
    ADD_FAILURE() << message_of({fmt::format("{}, call {} of {}", here.call, i + 1, program),
                                 "computes the same values on every engine, in every run and under every schedule"},
                                problem, "", testing::PrintToString(tested));
    return;
  }
}

}  // namespace tandem
