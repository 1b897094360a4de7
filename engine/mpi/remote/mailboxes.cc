#include "engine/mpi/remote/mailboxes.h"

#include <atomic>
#include <deque>

namespace tandem::mpi {

struct Mailboxes::Box {
  std::deque<WorkerMessage> messages;
  std::atomic<std::size_t> count{0};  // of messages; waits read it without the lock
};

namespace {

// Waits for a message in a mailbox.
class Arrival final : public threads::Wait {
 public:
  Arrival(const std::atomic<std::size_t>& messages, std::string what) : messages_(messages), what_(std::move(what)) {}
  bool is_over() const override { return messages_.load() > 0; }
  std::string text() const override { return what_; }

 private:
  const std::atomic<std::size_t>& messages_;
  const std::string what_;
};

}  // namespace

class Mailboxes::Handle final : public Mailbox {
 public:
  Handle(Mailboxes& mailboxes, int process, Address address)
      : mailboxes_(mailboxes), process_(process), address_(std::move(address)) {}

  void send(WorkerMessage message) override {
    check_is_sendable(message);
    if (process_ != mailboxes_.access_.rank()) return mailboxes_.post(process_, address_, message);
    mailboxes_.put(address_, std::move(message));
    mailboxes_.access_.wake();
  }

  WorkerMessage receive(std::string_view what) override {
    check_owns_mailbox(address_.first);
    const std::shared_ptr<Box> box = mailboxes_.box_of(address_);
    const Arrival arrival(box->count, std::string(what));
    for (;;) {
      mailboxes_.access_.wait_as_task(arrival);
      const std::lock_guard lock(mailboxes_.mutex_);
      if (box->messages.empty()) {  // another task was faster, or this one is ending and does not wait
        if (mailboxes_.access_.control().is_stopped()) mailboxes_.access_.control().throw_stopped();
        continue;
      }
      WorkerMessage first = std::move(box->messages.front());
      box->messages.pop_front();
      box->count.store(box->messages.size());
      return first;
    }
  }

 private:
  Mailboxes& mailboxes_;
  const int process_;
  const Address address_;
};

std::shared_ptr<Mailbox> Mailboxes::get(int process, int owner, std::string_view name) {
  return std::make_shared<Handle>(*this, process, Address(owner, name));
}

std::shared_ptr<Mailboxes::Box> Mailboxes::box_of(const Address& address) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Box>& box = boxes_[address];
  if (!box) box = std::make_shared<Box>();
  return box;
}

void Mailboxes::put(const Address& address, WorkerMessage message) {
  const std::shared_ptr<Box> box = box_of(address);
  const std::lock_guard lock(mutex_);
  box->messages.push_back(std::move(message));
  box->count.store(box->messages.size());
}

// Keeps the memory of the tensors here until the receiver releases it.
void Mailboxes::post(int process, const Address& address, const WorkerMessage& message) {
  if (!message.tensors.empty() && !access_.reaches_devices()) {
    throw UnavailableError(
        "a message with tensors to another process: engine 'mpi' reaches the GPUs of other processes "
        "by collectives only");
  }
  access_.say(process, RemoteKind::mail, [&](ByteWriter& bytes) {
    bytes.put(address.first).put_text(address.second).put_text(message.text);
    bytes.put(static_cast<std::uint64_t>(message.tensors.size()));
    for (const Tensor& tensor : message.tensors) {
      TensorRef ref = access_.ref_of(tensor);
      ref.id = access_.export_memory(tensor);
      put_ref(bytes, ref);
    }
  });
}

void Mailboxes::take_in(ByteReader& bytes) {
  const auto owner = bytes.get<int>();
  Address address(owner, bytes.get_text());
  WorkerMessage message{.text = bytes.get_text()};
  for (auto left = bytes.get<std::uint64_t>(); left > 0; --left) {
    message.tensors.push_back(access_.received(get_ref(bytes)));
  }
  put(address, std::move(message));
}

void Mailboxes::end() {
  const std::lock_guard lock(mutex_);
  boxes_.clear();
}

}  // namespace tandem::mpi
