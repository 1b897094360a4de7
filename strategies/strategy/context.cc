#include "strategies/strategy/context.h"

#include <fmt/format.h>

#include <any>
#include <utility>

#include "engine/task.h"
#include "strategies/base/errors.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/replica_context.h"

namespace tandem {
namespace {

struct TaskModes {
  std::vector<Mode> stack;
  std::vector<VariableCreator> creators;
  std::vector<std::shared_ptr<const OpenDeviceScope>> devices;
  Strategy* set_strategy = nullptr;
  Mode set_mode;
};

TaskModes& modes() {
  std::any& context = Task::current().context();
  if (!context.has_value()) context = TaskModes{};
  return std::any_cast<TaskModes&>(context);
}

std::string mixing(const Strategy& strategy, std::string_view call, const Strategy& current) {
  return fmt::format("{} of strategy '{}' inside a context of '{}': mixing different strategies", call, strategy.name(),
                     current.name());
}

}  // namespace

const Mode* current_mode() {
  TaskModes& task = modes();
  if (!task.stack.empty()) return &task.stack.back();
  return task.set_strategy ? &task.set_mode : nullptr;
}

void require_cross_replica(const Strategy& strategy, std::string_view call) {
  const Mode* mode = current_mode();
  if (!mode) return;
  if (mode->strategy == &strategy && !mode->replica) return;
  if (mode->strategy != &strategy && mode->strategy == &default_strategy()) {
    throw RuntimeError(fmt::format("{} needs to be inside scope of strategy '{}'", call, strategy.name()));
  }
  if (mode->strategy != &strategy) throw RuntimeError(mixing(strategy, call, *mode->strategy));
  throw RuntimeError(fmt::format("{} was called in a replica context, and needs the cross-replica context", call));
}

Strategy& get_strategy() {
  const Mode* mode = current_mode();
  return mode ? *mode->strategy : default_strategy();
}

bool has_strategy() {
  return &get_strategy() != &default_strategy();
}
bool in_cross_replica_context() {
  return get_replica_context() == nullptr;
}

ReplicaContext* get_replica_context() {
  const Mode* mode = current_mode();
  return mode ? mode->replica : &default_replica_context();
}

Strategy* get_cross_replica_context() {
  const Mode* mode = current_mode();
  return mode && !mode->replica ? mode->strategy : nullptr;
}

Worker& worker_of_task() {
  if (Worker* worker = Task::current().worker()) return *worker;
  throw RuntimeError(
      "no worker's program is running here, so there is no current worker: make the strategy inside the program that "
      "Engine::run() calls, or give it a worker");
}

void experimental_set_strategy(Strategy* strategy) {
  TaskModes& task = modes();
  if (!task.stack.empty())
    throw RuntimeError("experimental_set_strategy() must not be called inside a strategy's scope");
  task.set_strategy = strategy;
  task.set_mode = Mode{.strategy = strategy};
}

std::vector<std::shared_ptr<const OpenDeviceScope>>& open_device_scopes() {
  return modes().devices;
}

ModeGuard::ModeGuard(Mode mode)
    : stack_(modes().stack),
      hides_devices_((mode.replica && mode.replica != &default_replica_context()) || mode.update_replica.has_value()) {
  if (hides_devices_) hidden_devices_ = std::exchange(modes().devices, {});
  stack_.push_back(mode);
  depth_ = stack_.size();
}

ModeGuard::~ModeGuard() {
  TANDEM_REQUIRE_IN_DESTRUCTOR(stack_.size() == depth_, "scopes left in the wrong order");
  stack_.pop_back();
  if (hides_devices_) modes().devices = std::move(hidden_devices_);
}

VariableCreatorScope::VariableCreatorScope(VariableCreator creator) {
  modes().creators.push_back(std::move(creator));
  depth_ = modes().creators.size();
}

VariableCreatorScope::~VariableCreatorScope() {
  TANDEM_REQUIRE_IN_DESTRUCTOR(modes().creators.size() == depth_, "variable creator scopes left in the wrong order");
  modes().creators.pop_back();
}

const std::vector<VariableCreator>& variable_creators() {
  return modes().creators;
}

InheritedCreators::InheritedCreators(const std::vector<VariableCreator>& creators)
    : before_(std::exchange(modes().creators, creators)), devices_before_(std::exchange(modes().devices, {})) {}
InheritedCreators::~InheritedCreators() {
  modes().creators = std::move(before_);
  modes().devices = std::move(devices_before_);
}

StrategyScope::StrategyScope(Strategy& strategy, bool enters_cross_replica_context) {
  if (enters_cross_replica_context) mode_ = std::make_unique<ModeGuard>(Mode{.strategy = &strategy});
  creator_ = std::make_unique<VariableCreatorScope>([&strategy](const NextCreator& next, const VariableSpec& spec) {
    if (&get_strategy() != &strategy) throw RuntimeError(mixing(strategy, "a variable", get_strategy()));
    return next(spec);
  });
  modes_ = modes().stack.size();
  creators_ = modes().creators.size();
  devices_ = modes().devices.size();
}

bool StrategyScope::is_innermost() const {
  return modes().stack.size() == modes_ && modes().creators.size() == creators_ && modes().devices.size() == devices_;
}

void StrategyScope::leave() {
  if (modes().devices.size() != devices_)
    throw RuntimeError("device scope nesting error: one that was opened inside this scope is still open");
  if (modes().creators.size() != creators_)
    throw RuntimeError("variable creator scope nesting error: one that was opened inside this scope is still open");
  if (!is_innermost()) throw RuntimeError("scope nesting error: a scope that was opened inside this one is still open");
  creator_.reset();
  mode_.reset();
}

StrategyScope::~StrategyScope() {
  if (!creator_) return;
  TANDEM_REQUIRE_IN_DESTRUCTOR(is_innermost(), "scopes left in the wrong order");
  creator_.reset();
  mode_.reset();
}

}  // namespace tandem
