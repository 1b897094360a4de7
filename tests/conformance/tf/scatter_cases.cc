// Area "scatter".
#include "tests/conformance/tf/stage.h"

namespace tandem::scatter_cases {
namespace {

IndexedSlices one_row(const Stage& stage, Device& device, std::int64_t row, double value, DType dtype = DType::f32) {
  return stage.slices(device, {row}, {1}, {value}, {3}, dtype);
}

// Every replica scatters value id + 2 at index id; the components then.
Json scattered(Stage& stage, const std::shared_ptr<Variable>& v, kernel::Scatter operation) {
  run_each(stage, [&] {
    v->scatter(operation, one_row(stage, replica().device(), replica_id(), replica_id() + 2, v->dtype()));
  });
  return {{"per_replica", stage.components(*v)}};
}

// SUM refuses, ONLY_FIRST_REPLICA takes replica 0's.
Json refused_or_first(Stage& stage, const std::vector<double>& initial, kernel::Scatter operation, std::int64_t row) {
  const auto a = stage.var(initial, Stage::Aggregation::sum);
  const auto b = stage.var(initial, Stage::Aggregation::only_first_replica);
  const auto scatter = [&](const std::shared_ptr<Variable>& v) {
    run_each(stage, [&] { v->scatter(operation, one_row(stage, replica().device(), row, 1)); });
  };
  const Json refused = error_of([&] { scatter(a); });
  scatter(b);
  return {{"SUM", refused}, {"ONLY_FIRST", stage.components(*b)}};
}

const bool added = add_cases({
    {"sca-003", staged([](Stage& stage) {
       return scattered(stage,
                        stage.var({1, 6, 1}, Stage::Aggregation::sum, Stage::Synchronization::automatic, DType::i32),
                        kernel::Scatter::divide);
     })},
    {"sca-004", staged([](Stage& stage) {
       return scattered(stage, stage.var({2, 1, 1}, Stage::Aggregation::mean), kernel::Scatter::multiply);
     })},
    {"sca-cross", staged([](Stage& stage) -> Json {
       const auto v1 = stage.var({1, 1, 1}, Stage::Aggregation::sum);
       const auto v2 = stage.var({1, 1, 1});
       const IndexedSlices delta = one_row(stage, stage.worker.cpu(), 0, 2);
       v1->scatter_add(delta);
       v2->scatter_min(delta);
       return {{"v1", stage.json(v1->read())}, {"v2", stage.json(v2->read())}};
     })},
    {"sca-none", staged([](Stage& stage) -> Json {
       const auto v = stage.var(std::vector<double>{4});
       Json after = Json::array();
       using enum kernel::Scatter;
       for (const kernel::Scatter operation : {subtract, add, maximum, minimum, multiply, divide, replace}) {
         run_each(stage, [&] { v->scatter(operation, stage.slices(replica().device(), {0}, {1}, {2.0}, {1})); });
         after.push_back(stage.json(v->read())[0]);
       }
       return {{"after_each", after}};
     })},
    {"sca-scatter_max", staged([](Stage& stage) {
       return refused_or_first(stage, {0, 0, 0}, kernel::Scatter::maximum, 0);
     })},
    {"sca-scatter_min", staged([](Stage& stage) {
       return refused_or_first(stage, {0, 2, 0}, kernel::Scatter::minimum, 1);
     })},
});

}  // namespace
}  // namespace tandem::scatter_cases
