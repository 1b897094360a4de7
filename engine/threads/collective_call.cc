#include "engine/threads/collective_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/kernels/kernels.h"

namespace tandem::threads {
namespace {

// A block: long enough to stream from memory and to make taking it free. A part of it: so short that the sum of all
// ranks' contributions stays in the first-level cache.
constexpr std::int64_t kBlockBytes = 128 << 10;
constexpr std::int64_t kPartBytes = 16 << 10;

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::send_receive:
      return "send and receive";
  }
  return "";
}

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::maximum:
      return "maximum";
    case Reduction::minimum:
      return "minimum";
  }
  return "";
}

bool has_parts(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::reduce_scatter;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t size) {
  if (to != from) std::memcpy(to, from, size);
}

Clock::time_point deadline_of(std::optional<double> limit_s) {
  constexpr double kLongest = 1e9;  // 30 years: further dates do not fit the clock
  if (!limit_s || *limit_s > kLongest) return kNever;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*limit_s));
}

std::int64_t blocks_of(const CollectiveSpec& spec) {
  const std::int64_t bytes = spec.count * static_cast<std::int64_t>(size_of(spec.dtype));
  return (bytes + kBlockBytes - 1) / kBlockBytes;
}

}  // namespace

std::string CollectiveSpec::text() const {
  std::string text = fmt::format("{} of {} {}", threads::name_of(kind), count, tandem::name_of(dtype));
  if (reduces(kind)) text += fmt::format(" ({})", threads::name_of(reduction));
  if (kind == CollectiveKind::reduce) text += fmt::format(" to rank {}", root);
  if (kind == CollectiveKind::broadcast) text += fmt::format(" from rank {}", root);
  return text;
}

// Over when there is something to do for a rank: a block to take, to go on, or to give up.
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
                               std::int64_t sequence, std::shared_ptr<CollectivePerformer> performer)
    : control_(control),
      spec_(spec),
      devices_(std::move(devices)),
      sequence_(sequence),
      performer_(std::move(performer)),
      element_bytes_(size_of(spec.dtype)),
      blocks_per_part_(blocks_of(spec)),
      block_count_(performer_ ? std::min<std::int64_t>(blocks_per_part_, 1)
                              : blocks_per_part_ * (has_parts(spec.kind) ? ranks() : 1)),
      outputs_(devices_.size()),
      inputs_(devices_.size()),
      streams_(devices_.size()),
      has_arrived_(devices_.size()) {}

void CollectiveCall::provide(int rank, Tensor output, Tensor input) {
  outputs_[static_cast<std::size_t>(rank)] = std::move(output);
  inputs_[static_cast<std::size_t>(rank)] = std::move(input);
}

bool CollectiveCall::perform(int rank, Stream& stream, Waiter& waiter, std::optional<double> limit_s) {
  streams_[static_cast<std::size_t>(rank)] = &stream;
  const Clock::time_point deadline = deadline_of(limit_s);
  Clock::time_point wake_at = deadline;
  arrive(rank);
  while (!is_done_.load()) {
    if (!waiter.wait(Progress(*this, wake_at), &waiters_, Stoppable::yes)) return false;
    throw_if_broken();
    if (is_done_.load()) break;
    if (wake_at != kNever && Clock::now() >= wake_at) {
      break_off(std::make_exception_ptr(deadline_error(rank, *limit_s)));
      throw_if_broken();
      wake_at = kNever;
    }
    work();
  }
  throw_if_failed();
  if (done_at_ > deadline) throw deadline_error(rank, *limit_s);
  return true;
}

// The last to arrive works at once; of the others only as many are woken as there are cores for.
void CollectiveCall::arrive(int rank) {
  has_arrived_[static_cast<std::size_t>(rank)].store(true);
  if (arrived_.fetch_add(1) + 1 == ranks()) {
    if (block_count_ == 0) finish();
    if (block_count_ > 1)
      waiters_.wake(
          static_cast<int>(std::min<std::int64_t>(block_count_, std::min(ranks(), control_.hardware_threads())) - 1));
  }
}

void CollectiveCall::break_off(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(error_mutex_);
    int arrived = arrived_.load();
    do {
      if (arrived == ranks() || (arrived & kBroken) != 0) return;
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

DeadlineExceededError CollectiveCall::deadline_error(int rank, double limit_s) const {
  std::vector<DeviceId> group;
  for (const Device* device : devices_) group.push_back(device->id());
  return deadline_exceeded(text(), group, device(rank).id(), limit_s);
}

void CollectiveCall::work() {
  for (std::int64_t block; (block = next_block_.fetch_add(1)) < block_count_;) {
    process(block);
    if (finished_blocks_.fetch_add(1) + 1 == block_count_) finish();
  }
}

// Written before the call is done, so that whoever sees it done sees it.
void CollectiveCall::perform_alone() {
  try {
    performer_->perform(*this);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    error_ = std::current_exception();
  }
}

void CollectiveCall::throw_if_failed() const {
  if (!performer_) return;
  const std::lock_guard lock(error_mutex_);
  if (error_) std::rethrow_exception(error_);
}

void CollectiveCall::process(std::int64_t block) {
  if (performer_) {
    perform_alone();
    return;
  }
  const auto element_bytes = static_cast<std::int64_t>(element_bytes_);
  const std::int64_t block_elements = kBlockBytes / element_bytes;
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
    case CollectiveKind::broadcast:
      for (int rank = 0; rank < ranks(); ++rank) copy_bytes(output(rank, offset), input(spec_.root, offset), size);
      return;
    case CollectiveKind::send_receive:
      copy_bytes(output(1, offset), input(0, offset), size);
      return;
  }
}

// `sum` holds the owner's contribution; the others' are at `offset` of their inputs.
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

std::string_view CollectiveCall::name(int rank) const {
  if (spec_.kind == CollectiveKind::send_receive) return rank == 0 ? "send" : "receive";
  return threads::name_of(spec_.kind);
}

std::size_t CollectiveCall::record_bytes() const {
  const std::size_t part = static_cast<std::size_t>(spec_.count) * element_bytes_;
  return has_parts(spec_.kind) ? part * devices_.size() : part;
}

std::string CollectiveCall::text() const {
  constexpr int kNamedAtMost = 4;
  std::string missing;
  int missing_count = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (has_arrived_[static_cast<std::size_t>(rank)].load() || ++missing_count > kNamedAtMost) continue;
    missing += (missing.empty() ? "" : ", ") + device(rank).id().text();
  }
  if (missing_count > kNamedAtMost) missing += fmt::format(" and {} more", missing_count - kNamedAtMost);
  if (!missing.empty()) missing = "; missing " + missing;
  return fmt::format("{} #{} ({} of {} devices arrived{})", threads::name_of(spec_.kind), sequence_,
                     ranks() - missing_count, ranks(), missing);
}

}  // namespace tandem::threads
