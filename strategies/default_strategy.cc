#include "strategies/default_strategy.h"

#include "strategies/errors.h"
#include "strategies/replica_context.h"

namespace tandem {
namespace {

[[noreturn]] void no_devices() {
  throw RuntimeError("the default strategy has no devices; make a strategy and enter its scope");
}

class DefaultExtended final : public StrategyExtended {
 public:
  int num_replicas() const override { return 1; }
  const std::vector<Device*>& worker_devices() const override { no_devices(); }
  const std::vector<Device*>& parameter_devices() const override { no_devices(); }
  Worker& worker() const override { no_devices(); }
  Value call_for_each_replica(Strategy& strategy, const ReplicaFunction& function,
                              const Value::Parts& arguments) override {
    const ModeGuard mode(Mode{.strategy = &strategy, .replica = &default_replica_context()});
    return function(arguments);
  }
  Value all_reduce(ReduceOp /*op*/, const Value& value) override { return value; }
  Value reduce_to(ReduceOp /*op*/, const Value& value, Device& /*destination*/) override { return value; }
  void begin_all_reduce(ReduceOp /*op*/, const Value& /*tensors*/) override {}
  Event all_reduce_end(int /*replica*/) const override { return {}; }
  void update(Strategy& /*strategy*/, Variable& variable,
              const std::function<void(const Tensor& component, const Value::Parts& arguments)>& function,
              const Value::Parts& arguments) override {
    function(variable.components().front(), arguments);
  }
  std::string cross_device_ops_name() const override { return "none"; }
};

}  // namespace

Strategy& default_strategy() {
  static Strategy strategy("default", std::make_unique<DefaultExtended>());
  return strategy;
}

ReplicaContext& default_replica_context() {
  static ReplicaContext context(default_strategy(), 0, nullptr, nullptr);
  return context;
}

}  // namespace tandem
