// Area "mirrored-variable": moving averages.
#include "strategies/variables/moving_average.h"
#include "tests/conformance/tf/stage.h"

namespace tandem::moving_average_cases {
namespace {

using Aggregation = VariableAggregation;

// Replica i's value: [1 + i, 2 - i].
Tensor value_of_replica(const Stage& stage) {
  return stage.tensor(replica().device(), {2}, {1.0 + replica_id(), 2.0 - replica_id()});
}

Json averaged_in_replicas(Stage& stage, std::vector<double> initial, bool zero_debias, int times = 1) {
  const auto var = stage.var(std::move(initial));
  for (int i = 0; i < times; ++i) {
    run_each(stage, [&] { assign_moving_average(var, value_of_replica(stage), 0.25, zero_debias); });
  }
  return {{"var", stage.json(var->read())}, {"components", stage.components(*var)}};
}

const bool added = add_cases({
    {"mir-mavg-2", staged([](Stage& stage) {
       return averaged_in_replicas(stage, {10, 11}, false);
     })},
    {"mir-mavg-3", staged([](Stage& stage) {
       return averaged_in_replicas(stage, {0, 0}, true);
     })},
    {"mir-mavg-4", staged([](Stage& stage) -> Json {
       const auto var = stage.var({10, 11});
       const Tensor val = stage.tensor(stage.worker.cpu(), {2}, {1, 2});
       const Json first = stage.json(assign_moving_average(var, val, 0.25, false));
       return {{"after_first", first}, {"after_second", stage.json(assign_moving_average(var, val, 0.25, false))}};
     })},
    {"mir-mavg-5", staged([](Stage& stage) -> Json {
       const auto w = stage.var(std::vector<double>{1}, Aggregation::mean);
       ExponentialMovingAverage ema(0.8);
       const Value average = stage.strategy.run([&](const Value::Parts&) -> Value {
         ema.apply(w);
         w->assign_sub(stage.tensor(replica().device(), {1}, {0.5}));
         ema.apply(w);
         return ema.average(w);
       });
       return {{"value", stage.json(average)}};
     })},
    {"mir-x09", staged([](Stage& stage) {
       return averaged_in_replicas(stage, {0, 0}, true, 3);
     })},
    {"mir-x10", staged([](Stage& stage) -> Json {
       const auto w = stage.var(4.0);
       ExponentialMovingAverage ema(0.9, 0);
       ema.apply(w);
       w->assign(14.0);
       ema.apply(w);
       const auto average = ema.average(w);
       return {
           {"average", stage.json(average->read())}, {"name", average->name()}, {"trainable", average->trainable()}};
     })},
    {"mir-x11", staged([](Stage& stage) -> Json {
       const auto plain = stage.var({10, 11}), debiased = stage.var({0, 0});
       const Tensor val = stage.tensor(stage.worker.cpu(), {2}, {1, 2});
       return {{"plain", stage.json(assign_moving_average(plain, val, 0.25, false))},
               {"debiased", stage.json(assign_moving_average(debiased, val, 0.25))}};
     })},
});

}  // namespace
}  // namespace tandem::moving_average_cases
