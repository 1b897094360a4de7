// Simulates points of a plan in child processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep_space.h"

namespace tandem {

class PointPool {
 public:
  struct Events {
    std::function<void(std::size_t place, const std::string& line)> done;  // of a results file
    std::function<void(std::size_t place, const std::string& why)> lost;
    std::function<void()> tick;              // a few times a second; may throw, as `done` may
    std::function<bool(int job)> is_wanted;  // asked before a job begins
  };

  // All must outlive this. `files` are hashes of the points' files; `topology` is for scenarios that name none.
  PointPool(const SweepSpace& space, const std::vector<SweepSpace::Point>& points,
            const std::vector<std::string>& files, std::shared_ptr<const Topology> topology, int processes)
      : space_(space), points_(points), files_(files), topology_(std::move(topology)), processes_(processes) {}

  // Simulates the points at these places, which begin in this order; at the end, and alone, those that need more memory
  // than they have side by side. `is_whole`: as `tandem run` does, not quickly.
  void run(const std::vector<int>& jobs, bool is_whole, const Events& events) const;

 private:
  // Returns those that need more memory.
  std::vector<int> run_on(int processes, const std::vector<int>& jobs, bool is_whole, const Events& events) const;

  const SweepSpace& space_;
  const std::vector<SweepSpace::Point>& points_;
  const std::vector<std::string>& files_;
  std::shared_ptr<const Topology> topology_;
  int processes_;
};

}  // namespace tandem
