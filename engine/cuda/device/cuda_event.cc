#include "engine/cuda/device/cuda_event.h"

#include "engine/cuda/device/cuda_stream.h"

namespace tandem::cuda {

class CudaEvent::Issued final : public threads::Wait {
 public:
  explicit Issued(const CudaEvent& event) : event_(event) {}
  bool is_over() const override { return event_.is_issued_.load(); }
  std::string text() const override { return event_.stream_.text(); }

 private:
  const CudaEvent& event_;
};

// A failed event counts as complete: synchronize() reports the error.
bool CudaEvent::is_complete() const {
  return is_issued_.load() && (!point_ || query(point_->handle()) != cudaErrorNotReady);
}

// A stopped run may let a destructor's wait return before the event is issued. If the awaited work has failed and that
// has already stopped the run, the caller still gets that failure.
void CudaEvent::synchronize() {
  try {
    stream_.control().wait_as_task(Issued(*this), &waiters_);
    if (is_issued_.load() && point_) stream_.wait_for(*point_);
  } catch (const RunStopped&) {
    stream_.note_use();
    stream_.throw_if_failed();
    throw;
  }
  stream_.note_use();
  stream_.throw_if_failed();
  if (!stream_.control().is_stopped()) stream_.note_done(clock_);
}

void CudaEvent::issue(std::shared_ptr<GpuEvent> point) {
  point_ = std::move(point);
  is_issued_.store(true);
  waiters_.wake_all();
}

bool CudaEvent::wait_until_issued(threads::Waiter& waiter) {
  return is_issued_.load() || waiter.wait(Issued(*this), &waiters_, threads::Stoppable::yes);
}

}  // namespace tandem::cuda
