#include "strategies/context.h"

#include <any>

#include "engine/task.h"
#include "strategies/default_strategy.h"
#include "strategies/errors.h"
#include "strategies/replica_context.h"

namespace tandem {
namespace {

struct TaskModes {
  std::vector<Mode> stack;
  Strategy* set_strategy = nullptr;
  Mode set_mode;
};

TaskModes& modes() {
  std::any& context = Task::current().context();
  if (!context.has_value()) context = TaskModes{};
  return std::any_cast<TaskModes&>(context);
}

}  // namespace

const Mode* current_mode() {
  TaskModes& task = modes();
  if (!task.stack.empty()) return &task.stack.back();
  return task.set_strategy ? &task.set_mode : nullptr;
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

void experimental_set_strategy(Strategy* strategy) {
  TaskModes& task = modes();
  if (!task.stack.empty())
    throw RuntimeError("experimental_set_strategy() must not be called inside a strategy's scope");
  task.set_strategy = strategy;
  task.set_mode = Mode{.strategy = strategy};
}

ModeGuard::ModeGuard(Mode mode) : stack_(modes().stack) {
  stack_.push_back(mode);
  depth_ = stack_.size();
}

ModeGuard::~ModeGuard() {
  TANDEM_CHECK(stack_.size() == depth_, "scopes left in the wrong order");
  stack_.pop_back();
}

}  // namespace tandem
