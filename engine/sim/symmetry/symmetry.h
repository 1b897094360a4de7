// What the runs of one engine have found out about which workers, and which of their devices, represent others. A run
// that finds out more ends with Again, and the next one begins with that knowledge.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/sim/symmetry/device_blocks.h"
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

  // Applies what the last run found out. Returns whether the next one may leave out workers or devices.
  bool begin_run();
  // Makes blocks of devices that do the same smaller, from the next run on.
  void shrink_blocks() { shrinks_blocks_ = true; }
  // Makes every worker run, from the next run on. `why` is for the reader of the report.
  void separate_workers(const std::string& why);
  // Makes every worker run with all its devices, from the next run on. `why`, which may be empty, is for the reader of
  // the report.
  void turn_off(const std::string& why);
  // Makes these parts of a class classes of their own, from the next run on, because of the links that its flows share.
  void split(int index, std::vector<std::uint32_t> part_of_member);
  // Splits classes of one size in the same way because members differ, given a part for each member that runs. Members
  // between two that are in one part are taken to be in it, too; those between two parts become a class, some of whose
  // members run next. `why` is for the reader of the report, if no class is left that saves work.
  void split_between(const std::vector<int>& classes, std::span<const std::uint32_t> part_of_running,
                     const std::string& why);

  const WorkerClasses& classes() const { return classes_; }
  const DeviceBlocks& blocks() const { return blocks_; }
  FlowPatterns& patterns() { return patterns_; }
  const std::string& note() const { return note_; }

 private:
  struct Split {
    int index;
    std::vector<std::uint32_t> part_of_member;
    bool members_differ;
  };

  WorkerClasses classes_;
  DeviceBlocks blocks_;
  FlowPatterns patterns_;
  std::vector<Split> splits_;
  bool shrinks_blocks_ = false, separates_workers_ = false;
  bool is_on_ = true;
  int runs_ = 0;
  std::string why_;  // of the last split
  std::string note_;
};

}  // namespace tandem::sim::symmetry
