// The work a stream has yet to do, in order: any thread pushes, the stream's own thread takes from the front.
//
// Items are constructed once and used in place, in segments that are reused: pushing rarely allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace tandem::threads {

template <typename Item>
class WorkQueue {
 public:
  WorkQueue() : front_segment_(new Segment), back_segment_(front_segment_) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() {
    while (Segment* segment = front_segment_) {
      front_segment_ = segment->next;
      delete segment;
    }
    delete spare_.load();
  }

  template <typename... Arguments>
  void push(Arguments&&... arguments) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t index = pushed_.load(std::memory_order_relaxed);
    if (index > 0 && index % kSegmentItems == 0) append_segment();
    back_segment_->items[index % kSegmentItems].emplace(std::forward<Arguments>(arguments)...);
    pushed_.store(index + 1);
  }

  // Called by the stream's thread only. Returns the front, which stays in place until pop(), or null when empty.
  Item* front() {
    const std::uint64_t index = popped_.load(std::memory_order_relaxed);
    if (index == pushed_.load()) return nullptr;
    if (index > 0 && index % kSegmentItems == 0 && is_front_used_up_) drop_segment();
    return &*front_segment_->items[index % kSegmentItems];
  }
  void pop() {
    const std::uint64_t index = popped_.load(std::memory_order_relaxed);
    front_segment_->items[index % kSegmentItems].reset();
    is_front_used_up_ = (index + 1) % kSegmentItems == 0;
    popped_.store(index + 1);
  }

  bool is_empty() const { return popped_.load() == pushed_.load(); }
  std::size_t size() const {
    const std::uint64_t popped = popped_.load();  // first, since it never passes the other
    return static_cast<std::size_t>(pushed_.load() - popped);
  }

 private:
  static constexpr std::uint64_t kSegmentItems = 64;
  struct Segment {
    std::array<std::optional<Item>, kSegmentItems> items;
    Segment* next = nullptr;
  };

  void append_segment() {
    Segment* segment = spare_.exchange(nullptr);
    if (segment == nullptr) segment = new Segment;
    segment->next = nullptr;
    back_segment_->next = segment;
    back_segment_ = segment;
  }
  void drop_segment() {
    Segment* used = front_segment_;
    front_segment_ = used->next;
    is_front_used_up_ = false;
    delete spare_.exchange(used);
  }

  std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> popped_{0};
  Segment* front_segment_;
  bool is_front_used_up_ = false;
  std::atomic<Segment*> spare_{nullptr};
  alignas(64) std::mutex mutex_;  // guards back_segment_ and pushes
  Segment* back_segment_;
};

}  // namespace tandem::threads
