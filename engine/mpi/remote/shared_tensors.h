// Tensors that the workers of several processes share under a name. The name decides which process keeps its entry: who
// makes the tensor, or where it is. The lock is kept by the process of the tensor's memory, so that whatever is issued
// to it before an unlock comes before the next lock.
//
// In a job that goes on without lost processes, what a task issues to a tensor's device while it has the lock takes
// effect with the unlock, or is dropped with its process (device_service.h).
//
// Threads: any.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/mpi/remote/remote_access.h"
#include "engine/shared_tensor.h"

namespace tandem::mpi {

class SharedTensors {
 public:
  explicit SharedTensors(RemoteAccess& access) : access_(access) {}

  // See SharedState::tensor.
  std::shared_ptr<SharedTensor> get(std::string_view name, const std::function<Tensor()>& make);
  void handle(int from, RemoteKind kind, ByteReader& bytes);
  void end();
  // Gives the locks of a lost process to others, and lets others make what it was making.
  void lose(int process);
  // The lock of a process that the calling task has taken first of those that it still has; none: 0. Only where the job
  // survives losses.
  std::uint64_t locked_by_caller(int process);

 private:
  class LockedTensor;
  struct Entry {  // one name
    std::optional<TensorRef> made;
    int maker = 0;  // process
    std::deque<Reply> waiting;
  };
  struct Lock {
    bool is_held = false;
    int holder = 0;  // process
    std::int64_t version = 0;
    std::deque<Reply> waiting;
  };

  int keeper_of(std::string_view name) const;
  std::shared_ptr<SharedTensor> make_it(const std::string& name, const std::function<Tensor()>& make);
  void find(const Reply& reply, const std::string& name);
  void note_made(const std::string& name, const TensorRef& ref);
  void note_not_made(const std::string& name);
  void lock(const Reply& reply, std::uint64_t id);
  void unlock(std::uint64_t id, std::int64_t changes);
  void tell(const Reply& reply, const std::optional<TensorRef>& ref);
  void grant(const Reply& reply, std::int64_t version);
  using LockName = std::pair<int, std::uint64_t>;  // the process that keeps it, and its number
  void note_locked(const LockName& lock);
  void note_unlocked(const LockName& lock);

  RemoteAccess& access_;
  std::mutex mutex_;                                   // guards the rest
  std::map<std::string, Entry, std::less<>> entries_;  // of the names that this process keeps
  std::map<std::uint64_t, Lock> locks_;                // of memory of this process
  std::mutex held_mutex_;                              // guards held_
  std::map<const Task*, std::vector<LockName>> held_;  // by tasks of this process
};

}  // namespace tandem::mpi
