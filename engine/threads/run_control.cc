#include "engine/threads/run_control.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "topologies/base/error.h"

namespace tandem::threads {

RunControl::RunControl() : hardware_threads_(available_cores()) {}

void RunControl::add(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  waiters_.push_back(&waiter);
}

void RunControl::remove(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
}

void RunControl::stop(std::string deadlock_message) {
  const std::lock_guard lock(mutex_);
  if (is_stopped_.load()) return;
  deadlock_message_ = std::move(deadlock_message);
  is_stopped_.store(true);
  for (Waiter* waiter : waiters_) waiter->unpark();
}

void RunControl::stop_for(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_stopped_.load()) error_of_all_ = std::move(error);
  }
  stop();
}

std::string RunControl::deadlock_message() const {
  const std::lock_guard lock(mutex_);
  return deadlock_message_;
}

void RunControl::throw_stopped() const {
  if (std::string message = deadlock_message(); !message.empty()) throw DeadlockError(message);
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = error_of_all_;
  }
  if (error) std::rethrow_exception(error);
  throw RunStopped{};
}

void RunControl::wait_as_task(const Wait& wait, WaitList* list) {
  if (is_stopped() && std::uncaught_exceptions() > 0) return;  // a destructor, in a task that is already ending
  // The streams of a stopped run drop their work, so a wait for it may end as if the work were done.
  if (is_stopped() || !Waiter::of_this_thread().wait(wait, list, Stoppable::yes) || is_stopped()) throw_stopped();
}

}  // namespace tandem::threads
