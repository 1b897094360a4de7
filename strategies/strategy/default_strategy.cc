#include "strategies/strategy/default_strategy.h"

#include "engine/task.h"
#include "strategies/base/errors.h"
#include "strategies/input/input_workers.h"
#include "strategies/strategy/device_scope.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/variables/components.h"
#include "strategies/variables/replicated_variables.h"

namespace tandem {
namespace {

[[noreturn]] void no_devices() {
  throw RuntimeError("the default strategy has no devices; make a strategy and enter its scope");
}

class DefaultExtended final : public StrategyExtended {
 public:
  int num_replicas_in_sync() const override { return 1; }
  bool has_one_replica_by_kind() const override { return true; }
  const std::vector<Device*>& worker_devices() const override { no_devices(); }
  const std::vector<Device*>& parameter_devices() const override { no_devices(); }
  std::vector<Device*> non_slot_devices(const std::vector<std::shared_ptr<Variable>>& variables) override {
    return variables.empty() ? std::vector<Device*>{} : variables.front()->devices();
  }
  // Returns the running task's worker; variables are on its CPU unless a device scope says otherwise.
  Worker& worker() const override {
    if (!Task::current().worker()) no_devices();
    return *Task::current().worker();
  }

 protected:
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override {
    Device& host = worker().cpu();
    Device& device = spec.colocate_with ? *spec.colocate_with->devices().front() : device_of_scopes(worker(), spec);
    return std::make_shared<PlainVariable>(strategy(), spec, make_components(spec, {&device}, host).front());
  }
  Value all_reduce(ReduceOp /*op*/, const Value& value, const CommunicationOptions& /*options*/) override {
    return value;
  }
  void begin_all_reduce(ReduceOp /*op*/, const Value& /*tensors*/) override {}
  Event all_reduce_end(int /*local_replica*/) const override { return {}; }
  Value gather_to(const Value& value, int /*axis*/, const std::vector<Device*>& /*to*/) override { return value; }
  InputWorkers input_workers() override {
    return {.worker = worker(), .devices = {&worker().cpu()}, .num_replicas_in_sync = 1};
  }
  Value reduce_number(ReduceOp /*op*/, const Value& value) override { return value; }
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override {
    const ModeGuard mode(Mode{.strategy = &strategy(), .replica = &default_replica_context()});
    return function(arguments);
  }
  ReductionInFlight do_batch_reduce_to(ReduceOp /*op*/, const std::vector<ReducePair>& pairs,
                                       const CommunicationOptions& /*options*/) override {
    ReductionInFlight result;
    for (const ReducePair& pair : pairs) result.values.push_back(pair.first);
    return result;
  }
  Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                  const Value::Parts& arguments, bool group) override {
    return combine_updates({function(*variable, arguments)}, group);
  }
  Value do_update_non_slot(const std::vector<Device*>& /*devices*/, const NonSlotFunction& function,
                           const Value::Parts& arguments, bool group) override {
    return combine_updates({function(arguments)}, group);
  }
  // Does not change the default state, but refuses variables of other strategies inside the scope.
  Scope do_scope() override { return std::make_unique<StrategyScope>(strategy(), false); }
};

}  // namespace

Strategy& default_strategy() {
  static Strategy strategy("default", std::make_unique<DefaultExtended>());
  return strategy;
}

ReplicaContext& default_replica_context() {
  static ReplicaContext context(default_strategy(), 0, 0, nullptr, nullptr);
  return context;
}

}  // namespace tandem
