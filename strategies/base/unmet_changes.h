// Changes of variables that a worker makes without a word to the other workers, such as assign() in a cross-replica
// context. All workers have to make them, or their components differ. So each worker states, where it next meets the
// others in a collective, which changes it has made since they last met.
//
// Threads: the tasks of one worker's program, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/purpose.h"

namespace tandem {

class UnmetChanges {
 public:
  void add(const std::string& change);  // "assign() of variable 'v'"
  // Returns the changes in words and forgets them; "" for none.
  std::string take();

 private:
  std::string text_, last_;
  int entries_ = 0, repetitions_ = 0;
  std::int64_t more_ = 0;  // that are not in the text any more, and a hash of them
  std::uint64_t hash_ = 0;
};

// Adds the changes to the purpose of the collectives that are called in its life.
class MeetingOfWorkers {
 public:
  explicit MeetingOfWorkers(UnmetChanges& changes) {
    if (const std::string text = changes.take(); !text.empty()) detail_.emplace("after " + text);
  }

 private:
  std::optional<CallDetail> detail_;
};

}  // namespace tandem
