// Area "mirrored-variable": reading and changing mirrored variables.
#include <array>

#include "strategies/cross_device/host_values.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "tests/conformance/tf/agreed.h"

namespace tandem::mirrored_variable_cases {
namespace {

using Aggregation = VariableAggregation;
using Synchronization = VariableSynchronization;
using VariablePtr = std::shared_ptr<Variable>;
using Assign = Tensor (Variable::*)(const Value&);

constexpr std::array kAggregations = {Aggregation::none, Aggregation::sum, Aggregation::mean,
                                      Aggregation::only_first_replica};

// A variable that the replicas create.
VariablePtr created_in_run(const Stage& stage, double initial, Aggregation aggregation) {
  return stage.strategy.run([&](const Value::Parts&) { return stage.var(initial, aggregation); }).variable();
}

Json state(const Stage& stage, const VariablePtr& v) {
  return {{"v", stage.json(v->read())}, {"components", stage.components(*v)}};
}

double as_number(int id) {
  return static_cast<double>(id);
}

// Every replica changes the variable by a number of its own.
Json changed_by_id(Stage& stage, double initial, Aggregation aggregation, Assign assign, double factor = 1,
                   double offset = 0) {
  const VariablePtr v = created_in_run(stage, initial, aggregation);
  run_each(stage, [&] { ((*v).*assign)(offset + (factor * as_number(replica_id()))); });
  return state(stage, v);
}

// Every replica changes it by one and the same number.
Json changed_by_literal(Stage& stage, double initial, Aggregation aggregation, Assign assign, double number) {
  const VariablePtr v = created_in_run(stage, initial, aggregation);
  run_each(stage, [&] { ((*v).*assign)(Value::literal(number)); });
  return state(stage, v);
}

Json changed_across(Stage& stage, double initial, Assign assign, double number) {
  const VariablePtr v = created_in_run(stage, initial, Aggregation::none);
  const Tensor result = ((*v).*assign)(number);
  return {{"r", stage.json(result)}, {"components", stage.components(*v)}};
}

// mir-014-*: the components of the one variable of all, or every variable's where they differ.
Json changed_with_every_aggregation(Stage& stage, Assign assign, double number) {
  Json all = Json::array();
  for (const Aggregation aggregation : kAggregations) {
    const VariablePtr v = stage.var(0.0, aggregation);
    ((*v).*assign)(number);
    all.push_back(stage.components(*v));
    if (aggregation == Aggregation::sum) continue;  // refuses a shared number
    const VariablePtr w = stage.var(0.0, aggregation);
    run_each(stage, [&] { ((*w).*assign)(Value::literal(number)); });
    all.push_back(stage.components(*w));
  }
  for (const Json& components : all) {
    if (components != all.front()) return {{"components_in_every_case", all}};
  }
  return {{"components_in_every_case", all.front()}};
}

// mir-015-*
Json changed_by_per_replica(Stage& stage, Assign assign, double number) {
  Json read = Json::object();
  for (const Aggregation aggregation : {Aggregation::sum, Aggregation::mean, Aggregation::only_first_replica}) {
    const VariablePtr v = stage.var(0.0, aggregation);
    stage.strategy.run(
        [&](const Value::Parts& arguments) {
          ((*v).*assign)(arguments.front());
          return Value();
        },
        {stage.per_replica({number, number})});
    read[name_of(aggregation)] = stage.json(v->read());
  }
  return read;
}

Json only_first_replica_updates(Stage& stage) {
  const VariablePtr v0 = stage.var(2.0, Aggregation::only_first_replica, Synchronization::on_read);
  const VariablePtr v1 = stage.var(3.0, Aggregation::only_first_replica, Synchronization::on_write);
  const auto after_adding = [&](double a, double b) -> Json {
    run_each(stage, [&] {
      v0->assign_add(a * (replica_id() + 1));
      v1->assign_add(b * (replica_id() + 1));
    });
    return {{"v0_components", stage.components(*v0)},
            {"v0_read", stage.json(v0->read())},
            {"v1_components", stage.components(*v1)},
            {"v1_read", stage.json(v1->read())}};
  };
  const Json first = after_adding(5, 7);
  return {{"after_first", first}, {"after_second", after_adding(11, 13)}};
}

// Variables made once, at the first call, one from the value of the other.
Json initialised_in_run(Stage& stage) {
  VariablePtr w, v;
  const Value returned = stage.strategy.run([&](const Value::Parts&) -> Value {
    if (!v) {
      w = stage.var(0.0, Aggregation::mean);
      v = stage.var(host_number(stage.worker, w->read()), Aggregation::mean);
    }
    return v->assign_add(Value::literal(2.0));
  });
  return {{"returned", stage.locals(returned)}};
}

Json global_step(Stage& stage) {
  const auto g = stage.var(0, Aggregation::only_first_replica, Synchronization::automatic, DType::i64);
  const Value values = stage.strategy.run([&](const Value::Parts&) -> Value {
    g->assign_add(Value::literal(1));
    return g->read();
  });
  return {{"values", stage.locals(values)}};
}

// Each worker reads every other element, in half batches: together they see the global batches' elements once.
Json sum_over_dataset(Stage& stage) {
  const VariablePtr v = stage.var(0.0, Aggregation::sum);
  std::vector<float> squares;
  for (int x = stage.worker.task(); x < 10; x += 2) squares.push_back(static_cast<float>(x * x));
  const Dataset dataset = Dataset::from_tensor_slices({HostArray{.row_shape = {}, .values = squares}}).batch(2);
  DistributedIterator iterator =
      DistributedDataset(dataset, stage.worker, stage.strategy.extended().worker_devices()).iterator();
  while (const std::optional<Value> element = iterator.next()) {
    stage.strategy.run(
        [&](const Value::Parts& arguments) {
          const Tensor x = arguments.front().parts().front().tensor();
          const Tensor sum = x.device().allocate(x.dtype(), {});
          x.device().compute_stream().launch(op::sum_axis(sum, x, 0));
          v->assign_add(sum);
          return Value();
        },
        {*element});
  }
  return {{"v", stage.json(v->read())}};
}

const bool added = add_cases({
    {"mir-001",
     staged([](Stage& stage) { return changed_by_literal(stage, 1, Aggregation::none, &Variable::assign, 5); })},
    {"mir-003",
     staged([](Stage& stage) { return changed_by_literal(stage, 1, Aggregation::sum, &Variable::assign, 5); })},
    {"mir-004", staged([](Stage& stage) { return changed_across(stage, 1, &Variable::assign, 6); })},
    {"mir-005", staged([](Stage& stage) { return changed_by_id(stage, 1, Aggregation::mean, &Variable::assign); })},
    {"mir-008", staged([](Stage& stage) { return changed_by_id(stage, 1, Aggregation::mean, &Variable::assign_add); })},
    {"mir-010", staged([](Stage& stage) { return changed_across(stage, 5, &Variable::assign_sub, 2); })},
    {"mir-011", staged([](Stage& stage) { return changed_by_id(stage, 5, Aggregation::mean, &Variable::assign_sub); })},
    {"mir-012",
     staged([](Stage& stage) { return changed_by_literal(stage, 5, Aggregation::mean, &Variable::assign_sub, 1); })},
    {"mir-013", staged(only_first_replica_updates)},
    {"mir-014-assign",
     staged([](Stage& stage) { return changed_with_every_aggregation(stage, &Variable::assign, 1); })},
    {"mir-014-assign_add",
     staged([](Stage& stage) { return changed_with_every_aggregation(stage, &Variable::assign_add, 1); })},
    {"mir-014-assign_sub",
     staged([](Stage& stage) { return changed_with_every_aggregation(stage, &Variable::assign_sub, -1); })},
    {"mir-015-assign_add",
     staged([](Stage& stage) { return changed_by_per_replica(stage, &Variable::assign_add, 2); })},
    {"mir-015-assign_sub",
     staged([](Stage& stage) { return changed_by_per_replica(stage, &Variable::assign_sub, -2); })},
    {"mir-018", staged([](Stage& stage) -> Json {
       Scope scope = stage.strategy.scope();
       const VariablePtr v = stage.var(1.0);
       scope.reset();
       v->assign(3.0);
       return {{"read", stage.json(v->read())}, {"components", stage.components(*v)}};
     })},
    {"mir-019", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(15.0, Aggregation::only_first_replica, Synchronization::on_write);
       const Value returned =
           stage.strategy.run([&](const Value::Parts&) { return v->assign(as_number(replica_id())); });
       return {{"returned", stage.locals(returned)}};
     })},
    {"mir-020", staged(initialised_in_run)},
    {"mir-022", staged(global_step)},
    {"mir-023", staged([](Stage& stage) -> Json {
       Json reads = Json::array();
       for (const Aggregation aggregation : kAggregations) {
         const VariablePtr v = stage.var(2.0, aggregation);
         reads.push_back(stage.json(v->read()));
       }
       return {{"reads", reads}};
     })},
    {"mir-025", agreed(sum_over_dataset)},
    {"mir-x01", staged([](Stage& stage) {
       return changed_by_id(stage, 20, Aggregation::only_first_replica, &Variable::assign_sub, 3, 4);
     })},
    {"mir-x02", staged([](Stage& stage) { return changed_by_id(stage, 1, Aggregation::mean, &Variable::assign_add); })},
    {"mir-x03",
     staged([](Stage& stage) { return changed_by_id(stage, 2, Aggregation::mean, &Variable::assign_add, 2, 1); })},
    {"mir-x04",
     staged([](Stage& stage) { return changed_by_id(stage, 10, Aggregation::sum, &Variable::assign_sub, 1, 1); })},
    {"mir-x05",
     staged([](Stage& stage) { return changed_by_id(stage, 1, Aggregation::none, &Variable::assign_add, 10, 2); })},
    {"mir-x06",
     staged([](Stage& stage) { return changed_by_literal(stage, 7, Aggregation::sum, &Variable::assign, 0); })},
    {"mir-x07", staged([](Stage& stage) -> Json {
       const Value x = stage.per_replica({2, 3});
       Json components = Json::object();
       for (const Aggregation aggregation : kAggregations) {
         const VariablePtr v = stage.var(1.0, aggregation);
         run_each(stage, [&] { v->assign_add(x); });
         components[name_of(aggregation)] = stage.components(*v);
       }
       return components;
     })},
    {"mir-x08", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(0.0);
       v->assign(stage.per_replica({3, 4}));
       const Value seen = stage.strategy.run([&](const Value::Parts&) { return v->read(); });
       return {{"cross", stage.json(v->read())}, {"replica", stage.locals(seen)}};
     })},
});

}  // namespace
}  // namespace tandem::mirrored_variable_cases
