// The mailboxes of a run that is spread over processes: each is in the process of the worker that receives from it.
//
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "engine/mailbox.h"
#include "engine/mpi/remote/remote_access.h"

namespace tandem::mpi {

class Mailboxes {
 public:
  explicit Mailboxes(RemoteAccess& access) : access_(access) {}

  // See SharedState::mailbox; `process` is the owner's.
  std::shared_ptr<Mailbox> get(int process, int owner, std::string_view name);
  // Takes in a message from another process.
  void take_in(ByteReader& bytes);
  void end();

 private:
  class Handle;
  struct Box;
  using Address = std::pair<int, std::string>;  // the owner, and the name

  std::shared_ptr<Box> box_of(const Address& address);
  void put(const Address& address, WorkerMessage message);
  void post(int process, const Address& address, const WorkerMessage& message);

  RemoteAccess& access_;
  std::mutex mutex_;                               // guards the next, and the messages in the boxes
  std::map<Address, std::shared_ptr<Box>> boxes_;  // of this process
};

}  // namespace tandem::mpi
