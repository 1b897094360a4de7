#include "tests/conformance/kit/random_calls.h"

#include <fmt/format.h>

#include <utility>

#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/replica_context.h"

namespace tandem {
namespace {

ReplicaContext& this_replica() {
  return *get_replica_context();
}

int this_id() {
  return this_replica().replica_id_in_sync_group();
}

}  // namespace

RandomCalls::RandomCalls(Worker& worker, Strategy& strategy, std::uint64_t seed, const CallHooks& hooks,
                         std::vector<SeenCall>& seen)
    : worker_(worker), strategy_(strategy), random_(seed), hooks_(hooks), seen_(seen) {
  begin("create_variable()");
  for (const VariableAggregation aggregation :
       {VariableAggregation::sum, VariableAggregation::mean, VariableAggregation::only_first_replica}) {
    mirrored_.push_back(variable(aggregation, VariableSynchronization::automatic));
    on_read_.push_back(variable(aggregation, VariableSynchronization::on_read));
  }
}

void RandomCalls::make(int calls) {
  for (int i = 0; i < calls; ++i) {
    switch (below(6)) {
      case 0:
        assign_in_replicas();
        break;
      case 1:
        change_in_cross_replica();
        break;
      case 2:
        all_reduce_and_gather();
        break;
      case 3:
        merge_calls();
        break;
      case 4:
        reduce_and_gather();
        break;
      default:
        update();
    }
  }
  for (const auto* variables : {&mirrored_, &on_read_}) {
    for (const auto& v : *variables) {
      begin(fmt::format("read() of {}", v->text()));
      see(v->read());
    }
  }
}

void RandomCalls::begin(std::string call) {
  if (hooks_.before) hooks_.before(call);
  seen_.push_back({.call = std::move(call)});
}

std::shared_ptr<Variable> RandomCalls::variable(VariableAggregation aggregation,
                                                VariableSynchronization synchronization) {
  return strategy_.create_variable({.name = "v",
                                    .shape = {2},
                                    .initial_value = [](std::int64_t i) { return static_cast<double>(4 * i); },
                                    .synchronization = synchronization,
                                    .aggregation = aggregation});
}

void RandomCalls::enter_function() const {
  if (hooks_.in_function) hooks_.in_function();
}

Tensor RandomCalls::filled(double value) const {
  enter_function();
  Tensor tensor = this_replica().device().allocate(DType::f32, {2});
  this_replica().device().compute_stream().launch(op::fill(tensor, value));
  enter_function();
  return tensor;
}

void RandomCalls::see(const Tensor& tensor) {
  for (const double value : host_values(worker_, tensor)) seen_.back().values.push_back(value);
}

void RandomCalls::see(const Value& value) {
  if (value.is(ValueKind::number)) seen_.back().values.push_back(value.number());
  if (value.is(ValueKind::tensor)) see(value.tensor());
  if (value.is_distributed()) {
    for (const Value& part : value.parts()) see(part);
  }
}

const std::shared_ptr<Variable>& RandomCalls::any(const std::vector<std::shared_ptr<Variable>>& variables) {
  return variables[static_cast<std::size_t>(below(static_cast<int>(variables.size())))];
}

// Multiples of all replica counts used, so that means are whole; kept small by assigning, not only adding.
void RandomCalls::assign_in_replicas() {
  const auto& a = any(mirrored_);
  const auto& b = any(on_read_);
  const double amount = 8 * below(5);
  begin(fmt::format("assign() of {} and of {} in run(), then read()", a->text(), b->text()));
  strategy_.run([&](const Value::Parts&) {
    a->assign(filled(amount * (this_id() + 1)));
    b->assign(filled(amount * (this_id() + 2)));
    return Value();
  });
  see(a->read());
  see(b->read());
}

void RandomCalls::change_in_cross_replica() {
  const auto& a = any(mirrored_);
  begin(fmt::format("assign_add() and assign_sub() of {} in the cross-replica context, then read()", a->text()));
  a->assign_add(Value::literal(8 * below(3)));
  a->assign_sub(Value::literal(8));
  see(a->read());
}

void RandomCalls::all_reduce_and_gather() {
  const ReduceOp op = below(2) == 0 ? ReduceOp::sum : ReduceOp::mean;
  const double amount = 8 * below(7);
  begin(fmt::format("all_reduce({}) of {} * (id + 1) in run()", name_of(op), amount));
  see(strategy_.run(
      [&](const Value::Parts&) { return this_replica().all_reduce(op, Value(filled(amount * (this_id() + 1)))); }));
  begin(fmt::format("all_gather(axis 0) of {} + id in run()", amount));
  see(strategy_.run(
      [&](const Value::Parts&) { return this_replica().all_gather(Value(filled(amount + this_id())), 0); }));
}

void RandomCalls::merge_calls() {
  const int merges = 1 + below(3);
  begin(fmt::format("{} merge_calls with reduce(MEAN) in each replica of run()", merges));
  see(strategy_.run([&](const Value::Parts&) {
    Value value(static_cast<double>(this_id() + 1));
    for (int i = 0; i < merges; ++i) {
      value = this_replica().merge_call(
          [this](Strategy& strategy, const Value::Parts& arguments) {
            enter_function();
            return strategy.reduce(ReduceOp::mean, arguments[0]);
          },
          {value});
      enter_function();
      value = Value(value.number() * 2 + this_id());
    }
    return value;
  }));
}

void RandomCalls::reduce_and_gather() {
  const double amount = 1 + below(9);
  const std::string of = fmt::format(" of what run() returned, {} * (id + 1)", amount);
  begin("run()");
  const Value values = strategy_.run([&](const Value::Parts&) { return Value(filled(amount * (this_id() + 1))); });
  begin("reduce(SUM)" + of);
  see(strategy_.reduce(ReduceOp::sum, values));
  begin("reduce(SUM, axis 0)" + of);
  see(strategy_.reduce(ReduceOp::sum, values, 0));
  begin("gather(axis 0)" + of);
  see(strategy_.gather(values, 0));
}

// An exception in the function of a later component leaves the earlier ones changed, as in TensorFlow.
void RandomCalls::update() {
  const auto& a = any(mirrored_);
  begin(fmt::format("update() of {} with assign_add(), then read()", a->text()));
  bool is_first = true;
  strategy_.extended().update(a,
                              [&](Variable& component, const Value::Parts& arguments) {
                                if (std::exchange(is_first, false)) enter_function();
                                component.assign_add(arguments[0]);
                                return Value();
                              },
                              {Value::literal(below(4))});
  see(a->read());
}

std::vector<SeenCall> random_calls(Worker& worker, Strategy& strategy, std::uint64_t seed, int calls,
                                   const std::function<void(const std::string& call)>& before) {
  std::vector<SeenCall> seen;
  const CallHooks hooks{.before = before};
  RandomCalls(worker, strategy, seed, hooks, seen).make(calls);
  return seen;
}

}  // namespace tandem
