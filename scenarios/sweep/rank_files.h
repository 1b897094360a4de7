// The results files of processes that a launcher has started together, and that share the points of a sweep or of a
// plan: FILE is that of the first one, FILE.rank1 that of the second. Each writes to its own and reads the others'.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/launched_job.h"
#include "scenarios/sweep/results_file.h"
#include "topologies/base/error.h"

namespace tandem {

class RankFiles {
 public:
  // `results` is the first one's file. Throws RunError for several ranks without one.
  RankFiles(std::filesystem::path results, Rank rank, SweepIdentity identity);

  const Rank& rank() const { return rank_; }
  bool is_first() const { return rank_.index == 0; }
  bool has_several() const { return rank_.count > 1; }
  std::filesystem::path mine() const;
  // Whether a piece of work that ranks do in turn is this one's.
  bool has_turn(std::size_t turn) const {
    return static_cast<int>(turn % static_cast<std::size_t>(rank_.count)) == rank_.index;
  }

  // Returns what the others' files have had appended since the last call, including those of ranks of an earlier run
  // that had more; nothing without results. Throws what read_results() does.
  StoredPoints news();
  // Removes the others' files, once the first one's has all that they have.
  void remove_others() const;

 private:
  std::vector<std::filesystem::path> others() const;

  std::filesystem::path results_;
  Rank rank_;
  SweepIdentity identity_;
  std::map<std::filesystem::path, ResultsReader> readers_{};
};

// Nothing came from other ranks for too long.
class RanksAreSilent : public RunError {
 public:
  using RunError::RunError;
};

// Waits until `missing`, which is called a few times a second and reads what others have written, returns 0. Throws
// RanksAreSilent, which asks to run the `what` again, once that number has not changed for `wait_s` seconds.
void wait_for_ranks(double wait_s, const std::function<std::size_t()>& missing, const std::string& what);

}  // namespace tandem
