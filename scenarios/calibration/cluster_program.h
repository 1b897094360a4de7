// The programs that measure the network between workers, on the first device of each, through the engine contract only.
// All workers run them in step.
//
// Records of copies are identified by their step: 1 + the index of the path or traffic to which they belong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "scenarios/calibration/plan.h"
#include "scenarios/calibration/program.h"

namespace tandem::calibration {

// Lets the calling worker wait until all workers wait.
class Meeting {
 public:
  explicit Meeting(Worker& worker);
  void wait();

 private:
  Communicator& group_;
  Tensor token_;
  Stream& stream_;
};

// Copies from one worker to another; both are indices of workers. Either the receiver fetches the data or the sender
// sends it.
struct Path {
  int from = 0, to = 0;
  auto operator<=>(const Path&) const = default;
};

// Copies that several workers send at the same time.
struct Traffic {
  std::string what;  // "worker 0 and worker 1 to each other"
  std::vector<Path> paths;
};

// Returns every pair in both directions, or, where that would be more than 56 paths, the neighbours on two rings: each
// worker with the next one and with the one half way round.
std::vector<Path> paths_between(int workers);
inline constexpr std::string_view kThroughOne = "one to the second and from the third";
// Returns the traffics to measure: two workers to each other; one that sends to another and receives from a third; two
// pairs together; last, all workers to the first.
std::vector<Traffic> traffic_between(int workers);

// Measures each path alone. Leaves out sizes whose copies take longer than `most_s`, except the first two.
void measure_paths(Worker& worker, const Plan& plan, std::span<const Path> paths, double most_s);
// Measures copies of `bytes` bytes on all paths of each traffic together.
void measure_traffic(Worker& worker, const Plan& plan, std::span<const Traffic> traffic, std::int64_t bytes);
// Measures the collectives of the first `devices` devices of the first `workers` workers.
struct GroupShape {
  int workers = 1, devices = 1;  // devices of each worker
};
void measure_collectives_between(Worker& worker, const Plan& plan, const GroupShape& shape);
inline constexpr int kCollectivesStep = 1;  // the step of their records

}  // namespace tandem::calibration
