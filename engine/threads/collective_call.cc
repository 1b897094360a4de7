#include "engine/threads/collective_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/base/core_rules.h"
#include "engine/kernels/kernels.h"
#include "engine/threads/run_control.h"

namespace tandem::threads {
namespace {

// A part of a block is so short that the sum of all ranks' contributions stays in the first-level cache.
constexpr std::int64_t kPartBytes = 16 << 10;

bool has_parts(CollectiveKind kind) {
  return input_parts(kind, 2) > 1 || output_parts(kind, 2) > 1;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t size) {
  if (to != from) std::memcpy(to, from, size);
}

std::string call_mark(std::int64_t record_sequence) {
  return fmt::format("{}{}{}", kCallMarkBegin, record_sequence, kCallMarkEnd);
}

std::int64_t blocks_of(const CollectiveSpec& spec) {
  const std::int64_t bytes = spec.count * static_cast<std::int64_t>(size_of(spec.dtype));
  return (bytes + kCollectiveBlockBytes - 1) / kCollectiveBlockBytes;
}

}  // namespace

// How a call goes through its states, which arrived_, next_block_ and is_done_ spell:
//
//   state    | is                             | next: on what
//   ---------|--------------------------------|---------------------------------------------------------------
//   open     | arrived_ < parties             | working: the last rank arrives. broken: a deadline is missed, or
//            |                                | a rank that has failed breaks the call off
//   broken   | arrived_ has kBroken           | final: every rank throws error_
//   working  | arrived_ == parties, not done  | done: the thread that finishes the last block calls finish()
//   done     | is_done_                       | final: ranks return, or throw if late or if the executor failed
//
// "open" is left by one atomic step on arrived_, so a call is never both broken and started. While working, each thread
// takes next_block_ until there is none; with an executor there is one block, which is the executor's whole work.
//
// A rank's wait is over when it has something to do: take a block, go on, or give up.
class CollectiveCall::Progress final : public Wait {
 public:
  Progress(const CollectiveCall& call, Clock::time_point deadline) : call_(call), deadline_(deadline) {}
  bool is_over() const override {
    if (call_.is_done_.load() || call_.is_broken()) return true;
    if (call_.has_started() && call_.next_block_.load() < call_.block_count_) return true;
    return deadline_ != kNever && Clock::now() >= deadline_;
  }
  std::string text() const override { return call_.text(); }
  Clock::time_point ends_at() const override { return deadline_; }

 private:
  const CollectiveCall& call_;
  const Clock::time_point deadline_;
};

CollectiveCall::CollectiveCall(RunControl& control, const CollectiveSpec& spec, std::vector<Device*> devices,
                               std::int64_t sequence, std::shared_ptr<CollectiveExecutor> executor, int parties)
    : control_(control),
      spec_(spec),
      devices_(std::move(devices)),
      sequence_(sequence),
      executor_(std::move(executor)),
      parties_(parties > 0 ? parties : static_cast<int>(devices_.size())),
      element_bytes_(size_of(spec.dtype)),
      blocks_per_part_(blocks_of(spec)),
      block_count_(executor_ ? (spans_processes() ? 1 : std::min<std::int64_t>(blocks_per_part_, 1))
                             : blocks_per_part_ * (has_parts(spec.kind) ? ranks() : 1)),
      outputs_(devices_.size()),
      inputs_(devices_.size()),
      has_provided_(devices_.size()),
      streams_(devices_.size()),
      has_arrived_(devices_.size()) {}

void CollectiveCall::provide(int rank, Tensor output, Tensor input) {
  outputs_[static_cast<std::size_t>(rank)] = std::move(output);
  inputs_[static_cast<std::size_t>(rank)] = std::move(input);
  has_provided_[static_cast<std::size_t>(rank)] = true;
}

bool CollectiveCall::execute(int rank, Stream& stream, Waiter& waiter, std::optional<double> timeout_s) {
  streams_[static_cast<std::size_t>(rank)] = &stream;
  const Clock::time_point deadline = deadline_after(timeout_s);
  Clock::time_point wake_at = deadline;
  if (timeout_s) note_deadline({deadline, rank, *timeout_s});
  arrive(rank);
  while (!is_done_.load()) {
    if (!waiter.wait(Progress(*this, wake_at), &waiters_, Stoppable::yes)) return false;
    throw_if_broken();
    if (is_done_.load()) break;
    if (wake_at != kNever && Clock::now() >= wake_at) {
      break_off(std::make_exception_ptr(deadline_error(rank, *timeout_s)));
      throw_if_broken();
      wake_at = kNever;
    }
    if (has_started()) work();
  }
  throw_if_failed();
  if (done_at_ > deadline) throw deadline_error(rank, *timeout_s);
  return true;
}

// The last rank to arrive starts to work immediately; of the others only as many are woken as there are cores for.
void CollectiveCall::arrive(int rank) {
  has_arrived_[static_cast<std::size_t>(rank)].store(true);
  if (arrived_.fetch_add(1) + 1 == parties_) {
    if (block_count_ == 0) finish();
    if (block_count_ > 1)
      waiters_.wake(
          static_cast<int>(std::min<std::int64_t>(block_count_, std::min(ranks(), control_.hardware_threads())) - 1));
  }
}

void CollectiveCall::note_deadline(const CallDeadline& deadline) {
  const std::lock_guard lock(error_mutex_);
  if (deadline.at < first_deadline_.at) first_deadline_ = deadline;
}

CallDeadline CollectiveCall::first_deadline() const {
  const std::lock_guard lock(error_mutex_);
  return first_deadline_;
}

void CollectiveCall::break_off(const std::exception_ptr& error) {
  if (!spans_processes()) return break_now(error);
  if (!has_started()) executor_->ask_to_break(*this, error);
}

void CollectiveCall::break_now(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(error_mutex_);
    int arrived = arrived_.load();
    do {
      if (arrived == parties_ || (arrived & kBroken) != 0) return;
    } while (!arrived_.compare_exchange_weak(arrived, arrived | kBroken));
    error_ = error;
  }
  waiters_.wake_all();
}

void CollectiveCall::throw_if_broken() const {
  if (!is_broken()) return;
  const std::lock_guard lock(error_mutex_);
  std::rethrow_exception(error_);
}

DeadlineExceededError CollectiveCall::deadline_error(int rank, double timeout_s) const {
  return deadline_exceeded(text(), device_ids(), device(rank).id(), timeout_s);
}

void CollectiveCall::work() {
  control_.cores().serve_line();
  for (std::int64_t block; (block = next_block_.fetch_add(1)) < block_count_;) {
    process(block);
    if (finished_blocks_.fetch_add(1) + 1 == block_count_) finish();
  }
}

// Stores the error before the call is done, so that a rank that sees it done sees the error.
void CollectiveCall::execute_alone() {
  try {
    executor_->execute(*this);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    error_ = std::current_exception();
  }
}

void CollectiveCall::throw_if_failed() const {
  if (!executor_) return;
  const std::lock_guard lock(error_mutex_);
  if (error_) std::rethrow_exception(error_);
}

void CollectiveCall::process(std::int64_t block) {
  if (executor_) {
    execute_alone();
    return;
  }
  const auto element_bytes = static_cast<std::int64_t>(element_bytes_);
  const std::int64_t block_elements = kCollectiveBlockBytes / element_bytes;
  const std::int64_t part_elements = kPartBytes / element_bytes;
  const bool parts = has_parts(spec_.kind);
  const int owner = static_cast<int>(parts ? block / blocks_per_part_ : block % ranks());
  const std::int64_t first = (parts ? block % blocks_per_part_ : block) * block_elements;
  const std::int64_t end = std::min(first + block_elements, spec_.count);
  for (std::int64_t at = first; at < end; at += part_elements) {
    process_part(owner, at, std::min(part_elements, end - at));
  }
}

void CollectiveCall::process_part(int owner, std::int64_t first, std::int64_t count) {
  const std::size_t offset = static_cast<std::size_t>(first) * element_bytes_;
  const std::size_t size = static_cast<std::size_t>(count) * element_bytes_;
  const std::size_t owners_part =
      static_cast<std::size_t>(owner) * static_cast<std::size_t>(spec_.count) * element_bytes_;
  switch (spec_.kind) {
    case CollectiveKind::all_reduce:
      reduce_in_ring_order(output(owner, offset), offset, owner, count);
      for (int rank = 0; rank < ranks(); ++rank) copy_bytes(output(rank, offset), output(owner, offset), size);
      return;
    case CollectiveKind::reduce:
      reduce_in_ring_order(output(spec_.root, offset), offset, spec_.root, count);
      return;
    case CollectiveKind::reduce_scatter:
      copy_bytes(output(owner, offset), input(owner, owners_part + offset), size);
      reduce_in_ring_order(output(owner, offset), owners_part + offset, owner, count);
      return;
    case CollectiveKind::all_gather:
      for (int rank = 0; rank < ranks(); ++rank) {
        copy_bytes(output(rank, owners_part + offset), input(owner, offset), size);
      }
      return;
    case CollectiveKind::all_to_all:
      for (int rank = 0; rank < ranks(); ++rank) {
        const std::size_t ranks_part =
            static_cast<std::size_t>(rank) * static_cast<std::size_t>(spec_.count) * element_bytes_;
        copy_bytes(output(rank, owners_part + offset), input(owner, ranks_part + offset), size);
      }
      return;
    case CollectiveKind::broadcast:
      for (int rank = 0; rank < ranks(); ++rank) copy_bytes(output(rank, offset), input(spec_.root, offset), size);
      return;
    case CollectiveKind::send_receive:
      copy_bytes(output(1, offset), input(0, offset), size);
      return;
  }
}

// Adds the contributions of the other ranks, at `offset` of their inputs, to `sum`, which holds the owner's.
void CollectiveCall::reduce_in_ring_order(std::byte* sum, std::size_t offset, int owner, std::int64_t count) {
  for (int step = 1; step < ranks(); ++step) {
    accumulate(spec_.dtype, spec_.reduction, sum, input((owner + step) % ranks(), offset), count);
  }
}

void CollectiveCall::finish() {
  outputs_.clear();
  inputs_.clear();
  done_at_ = Clock::now();
  is_done_.store(true);
  waiters_.wake_all();
}

std::byte* CollectiveCall::output(int rank, std::size_t offset) const {
  return static_cast<std::byte*>(outputs_[static_cast<std::size_t>(rank)].data()) + offset;
}

const std::byte* CollectiveCall::input(int rank, std::size_t offset) const {
  return static_cast<const std::byte*>(inputs_[static_cast<std::size_t>(rank)].data()) + offset;
}

// Other processes' part of a call is not known here, so the text is a mark that is replaced where it is known.
std::string CollectiveCall::text() const {
  if (spans_processes() && !is_done_.load()) return call_mark(record_sequence());
  return call_text(spec_.kind, spec_.purpose, sequence_, device_ids(),
                   [this](int rank) { return is_done_.load() || has_arrived(rank); });
}

bool CollectiveCall::is_run_stopped() const {
  return control_.is_stopped();
}

std::vector<DeviceId> CollectiveCall::device_ids() const {
  std::vector<DeviceId> ids;
  for (const Device* device : devices_) ids.push_back(device->id());
  return ids;
}

}  // namespace tandem::threads
