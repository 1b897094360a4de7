#include "tests/cuda_emulation/streams.h"

namespace tandem::emulation {

std::shared_ptr<Queue> Queue::on(int ordinal) {
  std::shared_ptr<Queue> queue(new Queue(gpu(ordinal)));
  std::thread([queue] { queue->work_off(); }).detach();  // keeps the queue: destroying a stream waits for nothing
  return queue;
}

void Queue::push(Work work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  ++pushed_;
  changed_.notify_all();
}

void Queue::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&, target = pushed_] { return done_ >= target; });
}

bool Queue::is_done() {
  const std::lock_guard lock(mutex_);
  return done_ == pushed_;
}

void Queue::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

void Queue::work_off() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !work_.empty() || is_closed_; });
    if (work_.empty()) return;
    Work work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    execute(gpu_, work);
    work = {};
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

std::shared_ptr<Mark> EventState::mark() {
  const std::lock_guard lock(mutex_);
  return mark_;
}

void EventState::set(std::shared_ptr<Mark> mark) {
  const std::lock_guard lock(mutex_);
  mark_ = std::move(mark);
}

}  // namespace tandem::emulation
