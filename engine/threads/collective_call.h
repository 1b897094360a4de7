// One collective among the devices of a group, in shared memory.
//
// The streams of all ranks meet; then every thread that is awake takes blocks of the work until none is left, and all
// go on together. A block has an owner rank, and contributions are added in ring order from the owner. So the result
// depends on the size and the number of ranks only, never on which thread did what. The two halves of an all-reduce are
// one pass over each block: every element is loaded and stored once per rank.
//
// A rank may bring a timeout. When it expires before all ranks have arrived, the call is broken off: every rank in it,
// and every rank that arrives later, fails. Once all have arrived the call always completes, since no rank may leave
// while others write to its tensor; a rank whose timeout expires meanwhile fails afterwards.
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

#include "engine/collective.h"
#include "engine/device.h"
#include "engine/threads/waiter.h"

namespace tandem::threads {

class CollectiveCall;

// Executes the collectives of a group whose tensors are not in host memory.
class CollectiveExecutor {
 public:
  virtual ~CollectiveExecutor() = default;
  // Called once per collective, when all ranks have arrived, on the thread of one of them; the streams of all others
  // wait until it returns. An exception fails every rank.
  virtual void execute(const CollectiveCall& call) = 0;
  // Gives up the work under way, because a rank has missed its deadline.
  virtual void abort() = 0;

  // The rest is for groups that span processes. In each process, the call has only the ranks of that process.
  //
  // Called once per collective, by the first rank here that issues it.
  virtual void note_opened(const std::shared_ptr<CollectiveCall>& /*call*/) {}
  // Asks the other processes to break the call off. If they do, CollectiveCall::break_now() is called.
  virtual void ask_to_break(const CollectiveCall& /*call*/, const std::exception_ptr& /*error*/) {}
  // Returns the executor of messages between two ranks of the group; nothing where it is this one.
  virtual std::optional<std::shared_ptr<CollectiveExecutor>> executor_of_pair(int /*from*/, int /*to*/) {
    return std::nullopt;
  }
};

// Enclose the record_sequence() in the text of a call that spans processes.
inline constexpr char kCallMarkBegin = '\x1e';
inline constexpr char kCallMarkEnd = '\x1f';

// The timeout of the rank whose deadline comes first.
struct CallDeadline {
  Clock::time_point at = kNever;
  int rank = 0;
  double timeout_s = 0;
};

class CollectiveCall {
 public:
  // `devices` are those of the ranks, in order; send_receive has two, the sender and the receiver. `executor` is null
  // where the ranks' threads execute the call together. `parties` is the number of ranks in this process, 0 for all of
  // them; the executor takes care of the others.
  CollectiveCall(RunControl& control, const CollectiveSpec& spec, std::vector<Device*> devices, std::int64_t sequence,
                 std::shared_ptr<CollectiveExecutor> executor = nullptr, int parties = 0);

  // Hands over the tensors of a rank, at issue and before its execute(). A rank with one tensor passes it twice.
  void provide(int rank, Tensor output, Tensor input);
  bool has_provided(int rank) const { return has_provided_[static_cast<std::size_t>(rank)]; }
  // Calls lend(tensor) for the tensors of a rank, which must not have arrived.
  template <typename Lend>
  void lend(int rank, Lend&& lend) {
    lend(outputs_[static_cast<std::size_t>(rank)]);
    lend(inputs_[static_cast<std::size_t>(rank)]);
  }

  // Takes part for `rank`, on its stream's thread. Returns true when all ranks are done, false when the run was stopped
  // first. Throws DeadlineExceededError when the call takes longer than `timeout_s`, and the error of a broken call.
  bool execute(int rank, Stream& stream, Waiter& waiter, std::optional<double> timeout_s);
  // Makes every rank that is in the call or arrives later throw `error`. Has no effect once all ranks have arrived.
  // Where the group spans processes, only asks the others to agree.
  void break_off(const std::exception_ptr& error);
  // Breaks the call off for the ranks of this process, once that has been decided.
  void break_now(const std::exception_ptr& error);

  const CollectiveSpec& spec() const { return spec_; }
  std::string_view name(int rank) const { return record_name(spec_.kind, rank); }
  int ranks() const { return static_cast<int>(devices_.size()); }
  std::int64_t sequence() const { return sequence_; }
  // Gives the records of the call another sequence number than sequence().
  void set_record_sequence(std::int64_t sequence) { record_sequence_ = sequence; }
  std::int64_t record_sequence() const { return record_sequence_ < 0 ? sequence_ : record_sequence_; }
  bool spans_processes() const { return parties_ < ranks(); }
  bool has_arrived(int rank) const { return has_arrived_[static_cast<std::size_t>(rank)].load(); }
  Device& device(int rank) const { return *devices_[static_cast<std::size_t>(rank)]; }
  std::string text() const;  // "all_reduce #5 (4 of 8 devices arrived; missing /job:...)"
  DeadlineExceededError deadline_error(int rank, double timeout_s) const;

  // For executors, inside their execute().
  const Tensor& output(int rank) const { return outputs_[static_cast<std::size_t>(rank)]; }
  const Tensor& input(int rank) const { return inputs_[static_cast<std::size_t>(rank)]; }
  Stream& stream(int rank) const { return *streams_[static_cast<std::size_t>(rank)]; }
  CollectiveExecutor* executor() const { return executor_.get(); }
  CallDeadline first_deadline() const;
  bool is_run_stopped() const;  // if so, nobody waits for the result any more

 private:
  class Progress;

  std::vector<DeviceId> device_ids() const;
  bool has_started() const { return arrived_.load() == parties_; }
  bool is_broken() const { return (arrived_.load() & kBroken) != 0; }
  void arrive(int rank);
  void note_deadline(const CallDeadline& deadline);
  void throw_if_broken() const;
  void throw_if_failed() const;  // when the executor has
  void work();
  void execute_alone();
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
  const std::shared_ptr<CollectiveExecutor> executor_;
  const int parties_;  // ranks in this process
  std::int64_t record_sequence_ = -1;
  const std::size_t element_bytes_;
  const std::int64_t blocks_per_part_;
  const std::int64_t block_count_;

  // Held until all are done: a rank that leaves a stopped run must not free memory that others still use.
  std::vector<Tensor> outputs_, inputs_;
  std::vector<bool> has_provided_;  // guarded by the group's lock
  std::vector<Stream*> streams_;
  std::vector<std::atomic<bool>> has_arrived_;
  static constexpr int kBroken = 1 << 30;
  std::atomic<int> arrived_{0};     // number of ranks, plus kBroken in a broken call
  mutable std::mutex error_mutex_;  // guards the next two
  std::exception_ptr error_;        // why the call was broken, or what its executor threw
  CallDeadline first_deadline_;
  alignas(64) std::atomic<std::int64_t> next_block_{0};
  alignas(64) std::atomic<std::int64_t> finished_blocks_{0};
  Clock::time_point done_at_{};  // written before is_done_
  std::atomic<bool> is_done_{false};
  WaitList waiters_;
};

}  // namespace tandem::threads
