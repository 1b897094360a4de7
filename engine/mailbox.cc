#include "engine/mailbox.h"

#include <fmt/format.h>

#include <deque>
#include <mutex>
#include <utility>

#include "engine/worker.h"

namespace tandem {
namespace {

class MonitoredMailbox final : public Mailbox {
 public:
  MonitoredMailbox(int owner, std::unique_ptr<Monitor> monitor) : owner_(owner), monitor_(std::move(monitor)) {}

  void send(WorkerMessage message) override {
    check_is_sendable(message);
    const std::lock_guard lock(*monitor_);
    messages_.push_back(std::move(message));
    monitor_->notify_all();
  }
  WorkerMessage receive(std::string_view what) override {
    check_owns_mailbox(owner_);
    const std::lock_guard lock(*monitor_);
    while (messages_.empty()) monitor_->wait(what);
    WorkerMessage first = std::move(messages_.front());
    messages_.pop_front();
    return first;
  }

 private:
  const int owner_;
  const std::unique_ptr<Monitor> monitor_;  // guards messages_
  std::deque<WorkerMessage> messages_;
};

}  // namespace

std::shared_ptr<Mailbox> make_mailbox(int owner, std::unique_ptr<Monitor> monitor) {
  return std::make_shared<MonitoredMailbox>(owner, std::move(monitor));
}

void check_is_sendable(const WorkerMessage& message) {
  const Worker* sender = Task::current().worker();
  for (const Tensor& tensor : message.tensors) {
    TANDEM_REQUIRE(sender != nullptr && tensor.device().worker() == sender->index(),
                   fmt::format("{} is on no device of the worker that sends it", tensor.text()));
  }
}

void check_owns_mailbox(int owner) {
  const Worker* receiver = Task::current().worker();
  TANDEM_REQUIRE(receiver != nullptr && receiver->index() == owner,
                 fmt::format("only worker {} receives from its mailbox", owner));
}

}  // namespace tandem
