#include "engine/task.h"

namespace tandem {
namespace {

thread_local Task* current_task = nullptr;
thread_local Task::Provider provider = nullptr;

}  // namespace

Task& Task::current() {
  if (provider != nullptr) {
    if (Task* task = provider()) return *task;
  }
  if (current_task != nullptr) return *current_task;
  static thread_local Task outside("outside a run");
  return outside;
}

void Task::set_provider_of_this_thread(Provider new_provider) {
  provider = new_provider;
}

void Task::set_current_of_this_thread(Task* task) {
  current_task = task;
}

}  // namespace tandem
