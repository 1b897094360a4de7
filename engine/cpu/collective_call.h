// One collective among the devices of a group, in shared memory.
//
// The streams of all ranks meet; then whoever is awake takes blocks of the work until none is left, and all go on
// together. Blocks are the unit of a ring: each has an owner, and contributions are added in ring order from it. So
// the result depends on the size and the number of ranks alone, never on which thread did what. Reduce-scatter and
// all-gather of a block are one pass: every element is loaded and stored once a rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/communicator.h"
#include "engine/cpu/waiter.h"

namespace tandem::cpu {

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

class CollectiveCall {
 public:
  // `devices`: of the ranks, in order; send_receive has two, the sender and the receiver.
  CollectiveCall(RunControl& control, const CollectiveSpec& spec, std::vector<Device*> devices, std::int64_t sequence);

  // At issue, once a rank and before its perform(). Where a rank has one tensor, it is both.
  void provide(int rank, Tensor output, Tensor input);
  bool has_provided(int rank) const { return static_cast<bool>(outputs_[static_cast<std::size_t>(rank)]); }

  // On the stream of `rank`. Returns when all ranks are done; false when the run was stopped first.
  bool perform(int rank, Waiter& waiter);

  const CollectiveSpec& spec() const { return spec_; }
  std::string_view name(int rank) const;
  std::size_t record_bytes() const;  // nccl-tests' size: all_gather's output, reduce_scatter's input, else the buffer
  int ranks() const { return static_cast<int>(devices_.size()); }
  std::int64_t sequence() const { return sequence_; }
  Device& device(int rank) const { return *devices_[static_cast<std::size_t>(rank)]; }
  std::string text() const;  // "all_reduce #5 (4 of 8 devices arrived; missing /job:...)"

 private:
  class Progress;

  bool has_started() const { return arrived_.load() == ranks(); }
  void work();
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
  const std::size_t element_bytes_;
  const std::int64_t blocks_per_part_;
  const std::int64_t block_count_;

  // Kept until all are done: a rank that leaves a stopped run must not free what others still work on.
  std::vector<Tensor> outputs_, inputs_;
  std::vector<std::atomic<bool>> has_arrived_;
  std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::int64_t> next_block_{0};
  alignas(64) std::atomic<std::int64_t> finished_blocks_{0};
  std::atomic<bool> is_done_{false};
  WaitList waiters_;
};

}  // namespace tandem::cpu
