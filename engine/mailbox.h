// Messages that workers send each other, in however many processes they are.
//
// Threads: any task.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/task.h"
#include "engine/tensor.h"

namespace tandem {

// The tensors stay where they are: the receiver names the same memory, as it names any of another worker. The sender
// has synchronised with the work that writes them.
struct WorkerMessage {
  std::string text{};
  std::vector<Tensor> tensors{};
};

// Lives no longer than the run.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  // Sends a message and returns immediately. Messages of one task arrive in order. Throws UsageError for a tensor that
  // is on no device of the calling task's worker.
  virtual void send(WorkerMessage message) = 0;
  // Returns the first message that nobody has received; waits for one. `what` completes "<task> waits for ..." in a
  // deadlock message. Throws UsageError unless the calling task is of the worker whose mailbox this is.
  virtual WorkerMessage receive(std::string_view what) = 0;
};

// Makes the mailbox of a worker, for senders in the same process.
std::shared_ptr<Mailbox> make_mailbox(int owner, std::unique_ptr<Monitor> monitor);

// Throw the UsageErrors of send() and receive().
void check_is_sendable(const WorkerMessage& message);
void check_owns_mailbox(int owner);

}  // namespace tandem
