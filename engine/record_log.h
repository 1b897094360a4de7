// Takes the records of a run as they come, and hands them over in the order of a timeline. Unlike a vector it never
// moves what it has, of which a large run leaves millions.
#pragma once

#include <utility>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

class RecordLog {
 public:
  void add(Record&& record) {
    if (size_ % kChunk == 0) chunks_.emplace_back().reserve(kChunk);
    chunks_.back().push_back(std::move(record));
    ++size_;
  }
  // Empties the log. Equal records, as sort_records() compares them, keep their order.
  std::vector<Record> take_sorted();

 private:
  static constexpr std::size_t kChunk = 1024;
  std::vector<std::vector<Record>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace tandem
