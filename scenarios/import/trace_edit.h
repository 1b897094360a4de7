// Changes to the work of one rank: ops left out and put in, while what waits for them follows.
#pragma once

#include <map>
#include <vector>

#include "scenarios/import/trace.h"

namespace tandem {

class TraceEdit {
 public:
  // `trace` must outlive the edit.
  explicit TraceEdit(RankTrace& trace) : trace_(trace) {}

  // Puts an op in, issued right behind the op `position` of the trace as it was (-1: before all), after those put in
  // there earlier. Its `after` has numbers of ops as they were, or what this returned for another op. Returns its
  // number.
  int insert(int position, TraceOp op);
  // Leaves an op out. What waited for it waits for `instead`; the host's time goes to the next op.
  void replace(int op, int instead);
  // Makes an op wait for another one, which is issued before it.
  void wait(int op, int other) { more_waits_[op].push_back(other); }

  // Makes the changes.
  void apply();

 private:
  struct Inserted {
    int position = 0;
    TraceOp op{};
  };
  int followed(int op) const;
  TraceOp op_of(int number) const;

  RankTrace& trace_;
  std::vector<Inserted> inserted_{};
  std::map<int, int> replaced_{};
  std::map<int, std::vector<int>> more_waits_{};
};

}  // namespace tandem
