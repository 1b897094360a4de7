// One collective among the devices of a group, in shared memory.
//
// The streams of all ranks meet; then whoever is awake takes blocks of the work until none is left, and all go on
// together. Blocks are the unit of a ring: each has an owner, and contributions are added in ring order from it. So
// the result depends on the size and the number of ranks alone, never on which thread did what. Reduce-scatter and
// all-gather of a block are one pass: every element is loaded and stored once a rank.
//
// A rank may come with a time limit. When it is over before all are there, the call is broken off and everybody in it,
// and whoever comes later, fails. Once all are there the call is always completed, since none could leave while others
// write to its tensor; a rank whose limit is over meanwhile fails afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/communicator.h"
#include "engine/threads/waiter.h"

namespace tandem::threads {

enum class CollectiveKind : std::uint8_t { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send_receive };

// What all ranks of a call must agree on.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  std::int64_t count = 0;  // elements of one rank's part: of the smaller of its tensors
  Reduction reduction = Reduction::sum;
  int root = 0;  // for those that have one

  bool operator==(const CollectiveSpec&) const = default;
  std::string text() const;  // "all_reduce of 10 f32 (sum)"
};

class CollectiveCall;

// Performs the calls of a group whose tensors are not in host memory.
class CollectivePerformer {
 public:
  virtual ~CollectivePerformer() = default;
  // Called once a call, when all ranks have come, on the thread of one of them; the streams of all others wait for its
  // return. An exception fails every rank.
  virtual void perform(const CollectiveCall& call) = 0;
  // Gives up what is under way: a rank has waited too long for it.
  virtual void abort() = 0;
};

class CollectiveCall {
 public:
  // `devices`: of the ranks, in order; send_receive has two, the sender and the receiver. `performer`: null where the
  // ranks' threads perform it together.
  CollectiveCall(RunControl& control, const CollectiveSpec& spec, std::vector<Device*> devices, std::int64_t sequence,
                 std::shared_ptr<CollectivePerformer> performer = nullptr);

  // At issue, once a rank and before its perform(). Where a rank has one tensor, it is both.
  void provide(int rank, Tensor output, Tensor input);
  bool has_provided(int rank) const { return static_cast<bool>(outputs_[static_cast<std::size_t>(rank)]); }

  // On the stream of `rank`. Returns when all ranks are done; false when the run was stopped first. Throws
  // DeadlineExceededError when that took longer than `limit_s`, and the error of a call that was broken off.
  bool perform(int rank, Stream& stream, Waiter& waiter, std::optional<double> limit_s);
  // Everybody who is in the call or comes to it throws `error`. Without effect once all ranks have come.
  void break_off(const std::exception_ptr& error);

  const CollectiveSpec& spec() const { return spec_; }
  std::string_view name(int rank) const;
  std::size_t record_bytes() const;  // nccl-tests' size: all_gather's output, reduce_scatter's input, else the buffer
  int ranks() const { return static_cast<int>(devices_.size()); }
  std::int64_t sequence() const { return sequence_; }
  Device& device(int rank) const { return *devices_[static_cast<std::size_t>(rank)]; }
  std::string text() const;  // "all_reduce #5 (4 of 8 devices arrived; missing /job:...)"
  DeadlineExceededError deadline_error(int rank, double limit_s) const;

  // For performers, while they perform.
  const Tensor& output(int rank) const { return outputs_[static_cast<std::size_t>(rank)]; }
  const Tensor& input(int rank) const { return inputs_[static_cast<std::size_t>(rank)]; }
  Stream& stream(int rank) const { return *streams_[static_cast<std::size_t>(rank)]; }
  CollectivePerformer* performer() const { return performer_.get(); }

 private:
  class Progress;

  bool has_started() const { return arrived_.load() == ranks(); }
  bool is_broken() const { return (arrived_.load() & kBroken) != 0; }
  void arrive(int rank);
  void throw_if_broken() const;
  void throw_if_failed() const;  // a performer
  void work();
  void perform_alone();
  void process(std::int64_t block);
  void process_part(int owner, std::int64_t first, std::int64_t count);
  void reduce_in_ring_order(std::byte* sum, std::size_t offset, int owner, std::int64_t count);
  void finish();
  std::byte* output(int rank, std::size_t offset) const;
  const std::byte* input(int rank, std::size_t offset) const;

  RunControl& control_;
  const CollectiveSpec spec_;
  const std::vector<Device*> devices_;
  const std::int64_t sequence_;
  const std::shared_ptr<CollectivePerformer> performer_;
  const std::size_t element_bytes_;
  const std::int64_t blocks_per_part_;
  const std::int64_t block_count_;

  // Kept until all are done: a rank that leaves a stopped run must not free what others still work on.
  std::vector<Tensor> outputs_, inputs_;
  std::vector<Stream*> streams_;  // where the ranks have come from
  std::vector<std::atomic<bool>> has_arrived_;
  static constexpr int kBroken = 1 << 30;
  std::atomic<int> arrived_{0};  // ranks; with kBroken no more of them count
  mutable std::mutex error_mutex_;
  std::exception_ptr error_;  // of a broken call, or of its performer
  alignas(64) std::atomic<std::int64_t> next_block_{0};
  alignas(64) std::atomic<std::int64_t> finished_blocks_{0};
  Clock::time_point done_at_{};  // written before is_done_
  std::atomic<bool> is_done_{false};
  WaitList waiters_;
};

}  // namespace tandem::threads
