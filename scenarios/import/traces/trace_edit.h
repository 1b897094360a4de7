// Changes the work of one rank: leaves ops out and puts ops in, and adjusts the ops that wait for them.
#pragma once

#include <map>
#include <vector>

#include "scenarios/import/traces/trace.h"

namespace tandem {

class TraceEdit {
 public:
  // `trace` must outlive the edit.
  explicit TraceEdit(RankTrace& trace) : trace_(trace) {}

  // Inserts an op to be issued right after op `position` of the original trace (-1: before all) and after ops that were
  // inserted there earlier. Its `after` has the numbers of original ops, or numbers that this function returned.
  // Returns its number.
  int insert(int position, TraceOp op);
  // Leaves an op out. What waited for it waits for `instead`; the host time of the op is added to the next one.
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
