// Callbacks by simulated date. Replaces SimGrid's timers, which allocate for each date and leave equal dates unordered.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "engine/sim/base/date_heap.h"

namespace tandem::sim {

class Agenda {
 public:
  using Then = std::function<void()>;

  void add(double date_s, Then then) {
    if (free_.empty()) {
      free_.push_back(calls_.size());
      calls_.emplace_back();
    }
    calls_[free_.back()] = std::move(then);
    dates_.add(date_s, free_.back());
    free_.pop_back();
  }
  bool empty() const { return dates_.empty(); }
  double first_date_s() const { return dates_.first_date_s(); }  // of an agenda that is not empty
  Then take_first() {
    free_.push_back(dates_.take_first());
    return std::exchange(calls_[free_.back()], nullptr);
  }

 private:
  DateHeap<std::size_t> dates_;  // places in calls_, because moving functions about in a heap is slow
  std::vector<Then> calls_;
  std::vector<std::size_t> free_;
};

}  // namespace tandem::sim
