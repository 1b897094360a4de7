// What the runs of one engine have found out about which workers represent others. A run that finds out more ends with
// Again, and the next one begins with that knowledge.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/sim/symmetry/flow_patterns.h"
#include "engine/sim/symmetry/worker_classes.h"

namespace tandem::sim::symmetry {

// Ends a run that must be repeated. Not derived from std::exception, so that programs that handle errors do not handle
// it.
struct Again {};

class Symmetry {
 public:
  // `options` must outlive it.
  explicit Symmetry(const EngineOptions& options);

  // Whether a run of these options may leave out workers at all.
  static bool is_possible(const EngineOptions& options);

  // Applies what the last run found out. Returns whether the next one may leave out workers.
  bool begin_run();
  // Makes every worker run, from the next run on. `why`, which may be empty, is for the reader of the report.
  void turn_off(const std::string& why);
  // Makes these parts of a class classes of their own, from the next run on.
  void split(int index, std::vector<std::uint32_t> part_of_member);

  const WorkerClasses& classes() const { return classes_; }
  FlowPatterns& patterns() { return patterns_; }
  const std::string& note() const { return note_; }

 private:
  WorkerClasses classes_;
  FlowPatterns patterns_;
  std::vector<std::pair<int, std::vector<std::uint32_t>>> splits_;
  bool is_on_ = true;
  int runs_ = 0;
  std::string note_;
};

}  // namespace tandem::sim::symmetry
