#include "engine/cpu/cpu_event.h"

#include "engine/cpu/cpu_stream.h"

namespace tandem::cpu {

class CpuEvent::Reached final : public threads::Wait {
 public:
  explicit Reached(const CpuEvent& event) : event_(event) {}
  bool is_over() const override { return event_.is_complete(); }
  std::string text() const override { return event_.stream_.text(); }

 private:
  const CpuEvent& event_;
};

void CpuEvent::synchronize() {
  stream_.control().wait_as_task(Reached(*this), &waiters_);
  stream_.throw_if_failed();
}

void CpuEvent::complete() {
  is_complete_.store(true);
  waiters_.wake_all();
}

bool CpuEvent::wait_on_stream(threads::Waiter& waiter) {
  return is_complete() || waiter.wait(Reached(*this), &waiters_, threads::Stoppable::yes);
}

}  // namespace tandem::cpu
