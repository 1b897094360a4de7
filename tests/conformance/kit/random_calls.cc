#include <fmt/format.h>

#include <random>

#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/replica_context.h"
#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {
namespace {

class RandomCalls {
 public:
  using Before = std::function<void(const std::string& call)>;
  RandomCalls(Worker& worker, Strategy& strategy, std::uint64_t seed, const Before& before)
      : worker_(worker), strategy_(strategy), random_(seed), before_(before) {
    begin("create_variable()");
    for (const VariableAggregation aggregation :
         {VariableAggregation::sum, VariableAggregation::mean, VariableAggregation::only_first_replica}) {
      mirrored_.push_back(variable(aggregation, VariableSynchronization::automatic));
      on_read_.push_back(variable(aggregation, VariableSynchronization::on_read));
    }
  }

  std::vector<SeenCall> make(int calls) {
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
    return std::move(seen_);
  }

 private:
  // What is seen from now on belongs to this call.
  void begin(std::string call) {
    if (before_) before_(call);
    seen_.push_back({.call = std::move(call)});
  }
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  static ReplicaContext& replica() { return *get_replica_context(); }
  static int id() { return replica().replica_id_in_sync_group(); }

  std::shared_ptr<Variable> variable(VariableAggregation aggregation, VariableSynchronization synchronization) {
    return strategy_.create_variable({.name = "v",
                                      .shape = {2},
                                      .initial_value = [](std::int64_t i) { return static_cast<double>(4 * i); },
                                      .synchronization = synchronization,
                                      .aggregation = aggregation});
  }
  static Tensor filled(double value) {
    Tensor tensor = replica().device().allocate(DType::f32, {2});
    replica().device().compute_stream().launch(op::fill(tensor, value));
    return tensor;
  }
  void see(const Tensor& tensor) {
    for (const double value : host_values(worker_, tensor)) seen_.back().values.push_back(value);
  }
  void see(const Value& value) {
    if (value.is(ValueKind::number)) seen_.back().values.push_back(value.number());
    if (value.is(ValueKind::tensor)) see(value.tensor());
    if (value.is_distributed()) {
      for (const Value& part : value.parts()) see(part);
    }
  }
  const std::shared_ptr<Variable>& any(const std::vector<std::shared_ptr<Variable>>& variables) {
    return variables[static_cast<std::size_t>(below(static_cast<int>(variables.size())))];
  }

  // Multiples of all replica counts used, so that means are whole; kept small by assigning, not only adding.
  void assign_in_replicas() {
    const auto& a = any(mirrored_);
    const auto& b = any(on_read_);
    const double amount = 8 * below(5);
    begin(fmt::format("assign() of {} and of {} in run(), then read()", a->text(), b->text()));
    strategy_.run([&](const Value::Parts&) {
      a->assign(filled(amount * (id() + 1)));
      b->assign(filled(amount * (id() + 2)));
      return Value();
    });
    see(a->read());
    see(b->read());
  }
  void change_in_cross_replica() {
    const auto& a = any(mirrored_);
    begin(fmt::format("assign_add() and assign_sub() of {} in the cross-replica context, then read()", a->text()));
    a->assign_add(Value::literal(8 * below(3)));
    a->assign_sub(Value::literal(8));
    see(a->read());
  }
  void all_reduce_and_gather() {
    const ReduceOp op = below(2) == 0 ? ReduceOp::sum : ReduceOp::mean;
    const double amount = 8 * below(7);
    begin(fmt::format("all_reduce({}) of {} * (id + 1) in run()", name_of(op), amount));
    see(strategy_.run(
        [&](const Value::Parts&) { return replica().all_reduce(op, Value(filled(amount * (id() + 1)))); }));
    begin(fmt::format("all_gather(axis 0) of {} + id in run()", amount));
    see(strategy_.run([&](const Value::Parts&) { return replica().all_gather(Value(filled(amount + id())), 0); }));
  }
  void merge_calls() {
    const int merges = 1 + below(3);
    begin(fmt::format("{} merge_calls with reduce(MEAN) in each replica of run()", merges));
    see(strategy_.run([&](const Value::Parts&) {
      Value value(static_cast<double>(id() + 1));
      for (int i = 0; i < merges; ++i) {
        value = replica().merge_call(
            [](Strategy& strategy, const Value::Parts& arguments) {
              return strategy.reduce(ReduceOp::mean, arguments[0]);
            },
            {value});
        value = Value(value.number() * 2 + id());
      }
      return value;
    }));
  }
  void reduce_and_gather() {
    const double amount = 1 + below(9);
    const std::string of = fmt::format(" of what run() returned, {} * (id + 1)", amount);
    begin("run()");
    const Value values = strategy_.run([&](const Value::Parts&) { return Value(filled(amount * (id() + 1))); });
    begin("reduce(SUM)" + of);
    see(strategy_.reduce(ReduceOp::sum, values));
    begin("reduce(SUM, axis 0)" + of);
    see(strategy_.reduce(ReduceOp::sum, values, 0));
    begin("gather(axis 0)" + of);
    see(strategy_.gather(values, 0));
  }
  void update() {
    const auto& a = any(mirrored_);
    begin(fmt::format("update() of {} with assign_add(), then read()", a->text()));
    strategy_.extended().update(a,
                                [](Variable& component, const Value::Parts& arguments) {
                                  component.assign_add(arguments[0]);
                                  return Value();
                                },
                                {Value::literal(below(4))});
    see(a->read());
  }

  Worker& worker_;
  Strategy& strategy_;
  std::mt19937_64 random_;
  std::vector<std::shared_ptr<Variable>> mirrored_, on_read_;
  const Before& before_;
  std::vector<SeenCall> seen_;
};

}  // namespace

std::vector<SeenCall> random_calls(Worker& worker, Strategy& strategy, std::uint64_t seed, int calls,
                                   const std::function<void(const std::string& call)>& before) {
  return RandomCalls(worker, strategy, seed, before).make(calls);
}

}  // namespace tandem
