// What executors of groups that span processes have in common: the processes of a group vote for each call
// (engine/mpi/messages/protocol.h).
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/mpi/messages/messenger.h"
#include "engine/threads/collective_call.h"
#include "engine/threads/process_devices.h"

namespace tandem::mpi {

// The executors of messages between two devices of a group that are in this process.
//
// Threads: any.
class LocalPairs {
 public:
  // `pair` are the devices of the ranks `from` and `to`. One executor serves both directions.
  std::shared_ptr<threads::CollectiveExecutor> get(threads::ProcessMachine& machine, int from, int to,
                                                   const std::vector<Device*>& pair);

 private:
  std::mutex mutex_;                                                                       // guards executors_
  std::map<std::pair<int, int>, std::shared_ptr<threads::CollectiveExecutor>> executors_;  // by the ranks, in order
};

class VotedCollectives : public threads::CollectiveExecutor {
 public:
  void note_opened(const std::shared_ptr<threads::CollectiveCall>& call) override;
  void ask_to_break(const threads::CollectiveCall& call, const std::exception_ptr& error) override;

 protected:
  // `owners` are the processes of the devices; more than one. `rank` is this process. `salt` tells pairs of a group
  // from groups of two.
  VotedCollectives(Messenger& messenger, int rank, const std::vector<Device*>& devices, std::vector<int> owners,
                   std::uint64_t salt);

  CallId id_of(const threads::CollectiveCall& call) const { return {group_->hash, call.sequence()}; }
  const SpanningGroup& group() const { return *group_; }
  const std::vector<Device*>& devices() const { return devices_; }
  Device* device(int rank) const { return devices_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& owners() const { return group_->owners; }
  int owner(int rank) const { return owners()[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(owners().size()); }
  bool is_here(int rank) const { return owner(rank) == rank_; }
  int process() const { return rank_; }  // this one
  Messenger& messenger() { return messenger_; }
  // Returns what `prepare` does. If that throws, refuses the call, because the other processes wait for this one's
  // vote.
  template <typename Prepare>
  auto prepare_vote(const threads::CollectiveCall& call, Prepare&& prepare) {
    try {
      return prepare();
    } catch (...) {
      refuse(call, std::current_exception());
      throw;
    }
  }

 private:
  void refuse(const threads::CollectiveCall& call, const std::exception_ptr& error);

  Messenger& messenger_;
  const int rank_;
  const std::vector<Device*> devices_;
  const std::shared_ptr<const SpanningGroup> group_;
};

}  // namespace tandem::mpi
