// Runs points of a sweep one after the other, in a process that does nothing else.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reports/sweep/sweep_table.h"
#include "scenarios/scenario/shared_parts.h"
#include "scenarios/sweep/sweep_space.h"

namespace tandem {

// Returns the first of the problems, and how many more there are.
std::string text_of_problems(const InputError& error);

class PointRunner {
 public:
  // All must outlive this. `files` are the hashes of the points' files when the sweep began; `topology` is for
  // scenarios that name none; `memory_share` is the part of this machine's memory that a point may take.
  PointRunner(const SweepSpace& space, const std::vector<SweepSpace::Point>& points,
              const std::vector<std::string>& files, std::shared_ptr<const Topology> topology, double memory_share)
      : space_(space),
        points_(points),
        files_(files),
        topology_(std::move(topology)),
        memory_share_(memory_share),
        parts_(space.parts()) {}

  // Runs a point and returns its line for a results file. A failure is a line, too. Returns nothing for a point that
  // needs more than its share of the memory. `is_whole`: as `tandem run` does, not quickly.
  std::string line(int number, bool is_whole = false);
  // Does the same, quickly, for a scenario that is no point: the one that `make` returns.
  std::string line_of_other(const std::function<Scenario(SharedParts& parts)>& make);

 private:
  // `check` throws where the result is of no use.
  SweptPoint run(const std::function<Scenario()>& make, bool is_whole, const std::function<void()>& check);

  const SweepSpace& space_;
  const std::vector<SweepSpace::Point>& points_;
  const std::vector<std::string>& files_;
  std::shared_ptr<const Topology> topology_;
  double memory_share_;
  bool needs_more_ = false;  // than that share
  SharedParts parts_;
};

}  // namespace tandem
