// Which strategy and which context the running task is in, as TensorFlow's module functions tell it.
//
// Every task has a stack of modes. A mode holds a strategy and exactly one of a cross-replica context and a replica
// context. Outside everything the default strategy's replica context is current. The stack lives in Task::context().
#pragma once

#include <optional>
#include <vector>

namespace tandem {

class ReplicaContext;
class Strategy;

Strategy& get_strategy();
bool has_strategy();  // a strategy other than the default one
bool in_cross_replica_context();
ReplicaContext* get_replica_context();  // null in a cross-replica context
Strategy* get_cross_replica_context();  // the strategy whose cross-replica context is current, or null
// Makes `strategy` current for the rest of the task; null returns to the default state. RuntimeError inside a scope.
void experimental_set_strategy(Strategy* strategy);

struct Mode {
  Strategy* strategy = nullptr;
  ReplicaContext* replica = nullptr;    // null: the cross-replica context
  std::optional<int> update_replica{};  // inside update functions: which component is being updated
};
const Mode* current_mode();  // null in the default state

// Enters a mode for the life of the object. Leaving out of order is a RuntimeError at leave(), or stops in the
// destructor.
class ModeGuard {
 public:
  explicit ModeGuard(Mode mode);
  ~ModeGuard();
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  std::vector<Mode>& stack_;
  std::size_t depth_;
};

}  // namespace tandem
