// The NCCL communicators of those ranks of a group that this process holds.
//
// Every group starts with an id that one process makes and gives to all others.
//
// Threads: any may call give_up() and check(); calls of the rest must not overlap.
#pragma once

#include <nccl.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cuda/device/gpu.h"
#include "engine/cuda/device/gpu_watch.h"

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
  std::string name;             // the device's, for errors
  const Gpu* device = nullptr;  // outlives the communicators
};

// The communicators do not block: no thread is inside NCCL while GPUs connect or launch, so that all can be aborted.
class NcclCommunicators final : public Watched {
 public:
  using StreamOf = std::function<cudaStream_t(const NcclMember&)>;
  using Issue = std::function<void(const NcclMember&, ncclComm_t)>;
  using IsStopped = std::function<bool()>;

  // Returns when all `size` ranks have joined, in this process and in others, and have exchanged a first message, for
  // which NCCL connects them. `members` are those held here, each on a GPU of its own. Throws RunError when NCCL fails,
  // takes longer than `timeout_s`, or has not finished a second after `is_stopped` becomes true.
  NcclCommunicators(const NcclId& id, int size, std::vector<NcclMember> members, double timeout_s,
                    const IsStopped& is_stopped = {});
  ~NcclCommunicators() override;
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  const std::vector<NcclMember>& members() const { return members_; }
  // Calls issue(member, handle) for every member, within one NCCL group, so that none waits for another. Returns when
  // all is launched. `stream_of` returns the stream that a member uses, null for none; `what` names the call in errors.
  // Throws RunError, also after give_up(). Gives up by itself a second after `is_stopped` becomes true, because a
  // launch that does not end would block the thread. Leaves the thread's current GPU unchanged.
  void in_group(std::string_view what, const StreamOf& stream_of, const Issue& issue, const IsStopped& is_stopped = {});

  std::vector<ncclComm_t> give_up() override;
  void check() override;  // throws RunError for an error that NCCL has found on its own

 private:
  void start(const NcclId& id, int size, const IsStopped& is_stopped);
  void warm_up(int size, const IsStopped& is_stopped);
  void call_group(std::string_view what, const std::function<void()>& calls);
  void wait_for_nccl(std::string_view what, const IsStopped& is_stopped = {});
  bool is_in_progress(std::string_view what);
  void check_usable() const;
  std::string text_of(const NcclMember& member) const;
  void order_behind_others(const StreamOf& stream_of) const;
  void note_launched(const StreamOf& stream_of);

  const std::vector<NcclMember> members_;
  const double timeout_s_;
  std::vector<cudaEvent_t> launched_;  // after the latest kernel of each member
  std::mutex mutex_;                   // guards handles_; held for calls of NCCL, which return promptly
  std::vector<ncclComm_t> handles_;    // of members_; empty after give_up()
};

}  // namespace tandem::cuda
