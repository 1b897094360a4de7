// Items by date, the earliest first. Items of equal dates leave in the order in which they were added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tandem::sim {

template <typename Item>
class DateHeap {
 public:
  bool empty() const { return entries_.empty(); }
  void add(double date_s, Item item) {
    entries_.push_back({date_s, added_++, std::move(item)});
    std::push_heap(entries_.begin(), entries_.end(), is_later);
  }
  // These need a heap that is not empty.
  double first_date_s() const { return entries_.front().date_s; }
  const Item& first() const { return entries_.front().item; }
  Item take_first() {
    std::pop_heap(entries_.begin(), entries_.end(), is_later);
    Item item = std::move(entries_.back().item);
    entries_.pop_back();
    return item;
  }

 private:
  struct Entry {
    double date_s = 0;
    std::uint64_t number = 0;
    Item item;
  };
  static bool is_later(const Entry& a, const Entry& b) {
    return a.date_s != b.date_s ? a.date_s > b.date_s : a.number > b.number;
  }

  std::vector<Entry> entries_;
  std::uint64_t added_ = 0;
};

}  // namespace tandem::sim
