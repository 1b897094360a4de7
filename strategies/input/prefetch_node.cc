// The node whose elements are made ahead of their use, in a task of its own.
#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>

#include "engine/worker.h"
#include "strategies/input/nodes.h"

namespace tandem::nodes {
namespace {

// Elements go through a buffer. The task makes the next one while there is room. If a consumer finds the buffer empty
// and the task not at work, it makes its element itself, so a task that is slow to start delays nobody.
class RunAhead final : public ElementIterator {
 public:
  RunAhead(IteratorPtr from, std::int64_t buffer_size)
      : from_(std::move(from)), room_(static_cast<std::size_t>(buffer_size)) {}
  ~RunAhead() override {
    if (!monitor_) return;
    try {
      const std::lock_guard lock(*monitor_);
      is_ending_ = true;
      monitor_->notify_all();
    } catch (...) {  // the run was stopped, which also ends the task's waits
    }
    task_.reset();
  }
  RunAhead(const RunAhead&) = delete;
  RunAhead& operator=(const RunAhead&) = delete;

 private:
  // Holds an element, nothing after the last one, or what the input threw.
  struct Made {
    std::optional<Element> element;
    std::exception_ptr error;
  };

  // The consumer makes the first element, so one that only looks at a sample needs no task.
  std::optional<Element> produce() override {
    Worker* const worker = Task::current().worker();
    if (!worker) return from_->next();
    if (!monitor_) {
      monitor_ = worker->tasks().make_monitor();
      const Made first = make();
      has_more_ = first.element.has_value();
      if (has_more_) task_ = worker->tasks().start("prefetch", [this] { run_ahead(); });
      return given(first);
    }
    return given(take());
  }

  static std::optional<Element> given(const Made& made) {
    if (made.error) std::rethrow_exception(made.error);
    return made.element;
  }

  Made take() {
    std::unique_lock lock(*monitor_);
    while (buffer_.empty() && is_making_) monitor_->wait("an element that is being prefetched");
    if (buffer_.empty()) return make_unlocked(lock);
    Made made = std::move(buffer_.front());
    buffer_.pop_front();
    monitor_->notify_all();
    return made;
  }

  void run_ahead() {
    std::unique_lock lock(*monitor_);
    for (;;) {
      while (!is_ending_ && has_more_ && (is_making_ || buffer_.size() >= room_)) {
        monitor_->wait("room in the buffer of a prefetching dataset");
      }
      if (is_ending_ || !has_more_) return;
      Made made = make_unlocked(lock);
      buffer_.push_back(std::move(made));
      monitor_->notify_all();
    }
  }

  // Called by only one of the task and the consumer at a time.
  Made make_unlocked(std::unique_lock<Monitor>& lock) {
    is_making_ = true;
    lock.unlock();
    Made made = make();
    lock.lock();
    is_making_ = false;
    if (!made.element) has_more_ = false;
    monitor_->notify_all();
    return made;
  }

  Made make() {
    try {
      return {.element = from_->next(), .error = {}};
    } catch (const std::exception&) {
      return {.element = {}, .error = std::current_exception()};
    }
  }

  const IteratorPtr from_;
  const std::size_t room_;
  std::unique_ptr<Monitor> monitor_;  // guards the members down to is_ending_
  std::deque<Made> buffer_;
  bool is_making_ = false, has_more_ = true, is_ending_ = false;
  std::unique_ptr<BackgroundTask> task_;
};

class Prefetch final : public NodeOf<Prefetch> {
 public:
  Prefetch(NodePtr input, std::int64_t buffer_size)
      : NodeOf(DatasetOp::prefetch, {std::move(input)}), buffer_size_(buffer_size) {}
  IteratorPtr iterate(const MemoryPtr& memory) const override {
    IteratorPtr from = input().iterate(memory);
    if (buffer_size_ == 0) return from;
    return std::make_unique<RunAhead>(std::move(from), buffer_size_);
  }
  std::int64_t batch_size() const override { return input().batch_size(); }
  std::optional<std::int64_t> size() const override { return input().size(); }
  Element at(std::int64_t index) const override { return input().at(index); }

 private:
  std::int64_t buffer_size_;
};

}  // namespace

NodePtr prefetch(NodePtr input, std::int64_t buffer_size) {
  return std::make_shared<Prefetch>(std::move(input), buffer_size);
}

}  // namespace tandem::nodes
