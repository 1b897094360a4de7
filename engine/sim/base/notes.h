// Collects the caveats of a run for the reader of its report: each text once, in alphabetical order.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace tandem::sim {

class Notes {
 public:
  void add(std::string note) { notes_.insert(std::move(note)); }
  std::vector<std::string> take() { return {notes_.begin(), notes_.end()}; }

 private:
  std::set<std::string> notes_;
};

}  // namespace tandem::sim
