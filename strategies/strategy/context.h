// The strategy and the context that the running task is in: tf.distribute's module functions.
//
// Every task has a stack of modes. A mode holds a strategy and exactly one of a cross-replica context and a replica
// context. Outside everything the default strategy's replica context is current. The stack lives in Task::context().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem {

class ReplicaContext;
class Strategy;
class Variable;
class Worker;
struct OpenDeviceScope;
struct VariableSpec;

Strategy& get_strategy();
bool has_strategy();  // whether get_strategy() is not the default strategy
bool in_cross_replica_context();
ReplicaContext* get_replica_context();  // null in a cross-replica context
Strategy* get_cross_replica_context();  // the strategy whose cross-replica context is current, or null
// The worker whose program the calling task is part of. RuntimeError outside a program, that is outside Engine::run().
Worker& worker_of_task();
// Makes `strategy` current for the rest of the task; null returns to the default state. Throws RuntimeError inside a
// scope.
void experimental_set_strategy(Strategy* strategy);

struct Mode {
  Strategy* strategy = nullptr;
  ReplicaContext* replica = nullptr;    // null: the cross-replica context
  std::optional<int> update_replica{};  // inside update functions: which component is being updated
};
const Mode* current_mode();  // null in the default state

// Throws RuntimeError, naming `call`, unless the task is in `strategy`'s own cross-replica context or in the default
// state.
void require_cross_replica(const Strategy& strategy, std::string_view call);

// Enters a mode for the life of the object. A replica's and an update's mode hide the open device scopes.
class ModeGuard {
 public:
  explicit ModeGuard(Mode mode);
  ~ModeGuard();
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  std::vector<Mode>& stack_;
  std::size_t depth_;
  bool hides_devices_;
  std::vector<std::shared_ptr<const OpenDeviceScope>> hidden_devices_;
};

// tf.variable_creator_scope: `creator` sees every variable that this task creates during the life of the object, may
// change what is asked for, and calls `next` to have it created. The innermost creator is called first.
using NextCreator = std::function<std::shared_ptr<Variable>(const VariableSpec& spec)>;
using VariableCreator = std::function<std::shared_ptr<Variable>(const NextCreator& next, const VariableSpec& spec)>;

class VariableCreatorScope {
 public:
  explicit VariableCreatorScope(VariableCreator creator);
  ~VariableCreatorScope();
  VariableCreatorScope(const VariableCreatorScope&) = delete;
  VariableCreatorScope& operator=(const VariableCreatorScope&) = delete;

 private:
  std::size_t depth_;
};

// The creators that are open in this task, outermost first.
const std::vector<VariableCreator>& variable_creators();

// The device scopes that are open in this task, outermost first: see device_scope.h.
std::vector<std::shared_ptr<const OpenDeviceScope>>& open_device_scopes();

// Replaces the task's open creators for the life of the object: a replica's task starts with those of its run(). Device
// scopes are not inherited: a replica starts on its device.
class InheritedCreators {
 public:
  explicit InheritedCreators(const std::vector<VariableCreator>& creators);
  ~InheritedCreators();
  InheritedCreators(const InheritedCreators&) = delete;
  InheritedCreators& operator=(const InheritedCreators&) = delete;

 private:
  std::vector<VariableCreator> before_;
  std::vector<std::shared_ptr<const OpenDeviceScope>> devices_before_;
};

// The result of Strategy::scope(). The scope lasts as long as this object lives.
class StrategyScope {
 public:
  StrategyScope(Strategy& strategy, bool enters_cross_replica_context);
  // Leaves the scope unless leave() has. Stops the program when an inner scope is still open.
  ~StrategyScope();
  StrategyScope(const StrategyScope&) = delete;
  StrategyScope& operator=(const StrategyScope&) = delete;

  // Leaves before the end of the object's life. Throws RuntimeError, and stays in the scope, while a scope, a device
  // scope or a variable creator scope that was opened inside is still open.
  void leave();

 private:
  bool is_innermost() const;
  std::unique_ptr<ModeGuard> mode_;
  std::unique_ptr<VariableCreatorScope> creator_;
  std::size_t modes_ = 0, creators_ = 0, devices_ = 0;
};
using Scope = std::unique_ptr<StrategyScope>;

}  // namespace tandem
