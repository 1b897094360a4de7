// The NCCL communicators of those ranks of a group that this process holds.
//
// Every group starts with an id that one process makes and gives to all others, however many processes there are.
//
// Threads: any may call abort() and check(); calls of the rest must not overlap.
#pragma once

#include <nccl.h>

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cuda/gpu_watch.h"

namespace tandem::cuda {

// Names a group to every process that takes part in it.
class NcclId {
 public:
  static NcclId make();                        // throws RunError when NCCL cannot open its bootstrap's socket
  static NcclId parse(std::string_view text);  // throws Error for what text() did not write
  std::string text() const;                    // 256 hexadecimal digits, to hand to other processes
  const ncclUniqueId& handle() const { return id_; }

 private:
  ncclUniqueId id_{};
};

struct NcclMember {
  int rank = 0;
  int gpu = 0;
  std::string name;  // of its device, for errors
};

class NcclCommunicators final : public Watched {
 public:
  // Returns when all `size` ranks have joined, in this process and in others. `members` are those held here, each on a
  // GPU of its own. Throws RunError when NCCL fails.
  NcclCommunicators(const NcclId& id, int size, std::vector<NcclMember> members);
  ~NcclCommunicators() override;
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  const std::vector<NcclMember>& members() const { return members_; }
  // Calls issue(member, handle) for every member, within one NCCL group, so that none waits for another. `what` names
  // the call in errors. Throws RunError, also after abort().
  template <typename Issue>
  void in_group(std::string_view what, Issue&& issue);

  void abort() override;  // also ends NCCL's kernels, so that the streams can be waited for
  void check() override;  // throws RunError for an error that NCCL has found on its own

 private:
  // Orders the launches of all groups: NCCL's kernels wait for their peers on GPUs that groups may share, so all ranks
  // must see the calls of all groups in the same order.
  static std::mutex& launch_order();
  static void begin_group();
  static void end_group(std::string_view what);
  void check_usable() const;

  const std::vector<NcclMember> members_;
  std::mutex mutex_;
  std::vector<ncclComm_t> handles_;  // of members_; empty after abort()
};

template <typename Issue>
void NcclCommunicators::in_group(std::string_view what, Issue&& issue) {
  const std::scoped_lock lock(launch_order(), mutex_);
  check_usable();
  begin_group();
  try {
    for (std::size_t i = 0; i < members_.size(); ++i) issue(members_[i], handles_[i]);
  } catch (...) {
    ncclGroupEnd();  // closes the group; the first error is the one to report
    throw;
  }
  end_group(what);
}

}  // namespace tandem::cuda
