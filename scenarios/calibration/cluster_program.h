// The programs that measure the network between workers, on the first device of each, through the engine contract only.
// Every worker runs them, and they keep in step with each other.
//
// Copies are found again by their step: 1 + the index of the path or traffic they belong to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "scenarios/calibration/plan.h"
#include "scenarios/calibration/program.h"

namespace tandem::calibration {

// Waits on the calling worker until all workers wait.
class Meeting {
 public:
  explicit Meeting(Worker& worker);
  void wait();

 private:
  Communicator& group_;
  Tensor token_;
  Stream& stream_;
};

// Copies from one worker to another; both are indices of workers. The receiver fetches them, or the sender sends them.
struct Path {
  int from = 0, to = 0;
  auto operator<=>(const Path&) const = default;
};

// Copies that several workers send at the same time, and what that shows.
struct Traffic {
  std::string what;  // "worker 0 and worker 1 to each other"
  std::vector<Path> paths;
};

// Every pair in both directions, or, where that would be more than 56 routes, the neighbours on two rings: each worker
// with the next one and with the one half the way round.
std::vector<Path> paths_between(int workers);
// Two workers to each other; two pairs together; all workers to the first.
std::vector<Traffic> traffic_between(int workers);

// Measures each path alone. Sizes whose copies take longer than `most_s` end the list of that path, which has two sizes
// at least.
void measure_paths(Worker& worker, const Plan& plan, std::span<const Path> paths, double most_s);
// Measures copies of so many bytes on all paths of a traffic together.
void measure_traffic(Worker& worker, const Plan& plan, std::span<const Traffic> traffic, std::int64_t bytes);
// Measures the collectives of the first `devices` devices of the first `workers` workers.
struct GroupShape {
  int workers = 1, devices = 1;  // devices of each worker
};
void measure_collectives_between(Worker& worker, const Plan& plan, const GroupShape& shape);
inline constexpr int kCollectivesStep = 1;  // of their records

}  // namespace tandem::calibration
