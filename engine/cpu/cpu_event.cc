#include "engine/cpu/cpu_event.h"

#include <utility>

#include "engine/cpu/cpu_stream.h"
#include "topologies/base/error.h"

namespace tandem::cpu {

class CpuEvent::Reached final : public threads::Wait {
 public:
  explicit Reached(const CpuEvent& event) : event_(event) {}
  bool is_over() const override { return event_.is_complete(); }
  std::string text() const override { return event_.text(); }

 private:
  const CpuEvent& event_;
};

CpuEvent::CpuEvent(CpuStream& stream) : control_(stream.control()), stream_(&stream) {}

std::string CpuEvent::text() const {
  TANDEM_CHECK(stream_ != nullptr, "an event of another process without a text");
  return stream_->text();
}

void CpuEvent::throw_if_failed() const {
  TANDEM_CHECK(stream_ != nullptr, "an event of another process that does not tell failures");
  if (is_complete() && loss_) std::rethrow_exception(loss_);
  stream_->note_use();
  stream_->throw_if_failed();
}

// If the awaited work has failed and that has already stopped the run, the caller still gets that failure.
void CpuEvent::synchronize() {
  try {
    control_.wait_as_task(Reached(*this), &waiters_);
  } catch (const RunStopped&) {
    throw_if_failed();
    throw;
  }
  throw_if_failed();
}

void CpuEvent::complete_with_loss(std::exception_ptr loss) {
  loss_ = std::move(loss);
  complete();
}

void CpuEvent::complete() {
  std::vector<std::function<void()>> functions;
  {
    const std::lock_guard lock(mutex_);
    is_complete_.store(true);
    functions = std::exchange(functions_, {});
  }
  waiters_.wake_all();
  for (const std::function<void()>& function : functions) function();
}

void CpuEvent::when_complete(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_complete_.load()) {
      functions_.push_back(std::move(function));
      return;
    }
  }
  function();
}

bool CpuEvent::wait_on_stream(threads::Waiter& waiter) {
  return is_complete() || waiter.wait(Reached(*this), &waiters_, threads::Stoppable::yes);
}

}  // namespace tandem::cpu
