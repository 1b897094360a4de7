// Collects the records of a run or of a stream. Unlike a vector it never moves those it has: large runs have millions.
#pragma once

#include <utility>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

class RecordLog {
 public:
  void add(const Record& record) {
    if (size_ % kChunk == 0) chunks_.emplace_back().reserve(kChunk);
    chunks_.back().push_back(record);
    ++size_;
  }
  // Appends the records to `records`, in the order in which they came, and empties the log.
  void move_to(std::vector<Record>& records);
  // Returns the records in the order of a timeline and empties the log. Equal records, as sort_records() compares them,
  // keep their order.
  std::vector<Record> take_sorted();

 private:
  static constexpr std::size_t kChunk = 1024;
  std::vector<std::vector<Record>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace tandem
