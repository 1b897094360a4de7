// The records of one stream, in the order of its work.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "engine/timeline.h"

namespace tandem::threads {

// Stores records in chunks, so that growing never moves those already there in the middle of a run.
class RecordLog {
 public:
  void add(Record record) {
    if (chunks_.empty() || chunks_.back().size() == kChunkRecords) chunks_.emplace_back().reserve(kChunkRecords);
    chunks_.back().push_back(std::move(record));
  }
  void move_to(std::vector<Record>& records) {
    for (std::vector<Record>& chunk : chunks_) {
      records.insert(records.end(), std::move_iterator(chunk.begin()), std::move_iterator(chunk.end()));
    }
    chunks_.clear();
  }

 private:
  static constexpr std::size_t kChunkRecords = 1024;
  std::vector<std::vector<Record>> chunks_;
};

}  // namespace tandem::threads
