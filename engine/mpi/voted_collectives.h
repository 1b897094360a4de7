// What executors of groups that span processes have in common: the processes of a group vote for each call
// (engine/mpi/protocol.h).
#pragma once

#include <memory>
#include <vector>

#include "engine/mpi/messenger.h"
#include "engine/threads/collective_call.h"

namespace tandem::mpi {

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
  const std::vector<int>& owners() const { return group_->owners; }
  int owner(int rank) const { return owners()[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(owners().size()); }
  bool is_here(int rank) const { return owner(rank) == rank_; }
  Messenger& messenger() { return messenger_; }

 private:
  Messenger& messenger_;
  const int rank_;
  const std::vector<Device*> devices_;
  const std::shared_ptr<const SpanningGroup> group_;
};

}  // namespace tandem::mpi
