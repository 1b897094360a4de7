// Who slowed a job down: replays what was recorded with the times that ops would ideally have, and with those of some
// of them kept. The method and its figures are those of "Understanding Stragglers in Large Model Training Using
// What-if Analysis" (arXiv 2505.05713); section and equation numbers below are of that paper.
#pragma once

#include <string>
#include <vector>

#include "reports/blame/recorded_job.h"

namespace tandem {

// The slowdown of a step in which only some ops take as long as they did, and all others as long as they ideally do:
// the times of all steps together, divided by those of ideal steps (equations 2 to 4).
struct BlamedPart {
  std::string name{};
  double slowdown = 1;
  std::vector<double> by_step{};
};

// The job in which some ops take as long as they ideally do, and all others as long as they did.
struct Fix {
  std::string what{};
  double step_s = 0;
  // The part of what the slowdown costs that is saved; above 1 or below 0 where the others are faster or slower than
  // ideal ones, and 0 where there is no slowdown.
  double share = 0;
};

// What the steps that were replayed without delays waited for, from their ends back to their beginnings.
struct BlamedPath {
  int worker = 0;
  std::string type{};
  double step_s = 0;  // of a step, on average
};

struct Blame {
  std::string name{};
  std::size_t ops = 0;  // that were recorded
  std::vector<RecordedWorker> workers{};
  std::size_t replicas = 0, stages = 0;
  std::vector<int> steps{};
  double recorded_s = 0;       // the mean step as it was recorded, by aligned clocks
  double replayed_s = 0;       // replayed with the times that were recorded, without delays between ops
  double ideal_s = 0;          // replayed with ideal times
  double slowdown = 1;         // S (equation 1): replayed_s / ideal_s
  double launch_slowdown = 1;  // recorded_s / replayed_s
  double clocks_s = 0;         // the largest difference between clocks that was removed

  std::vector<double> step_slowdowns{};              // in the order of `steps`
  std::vector<BlamedPart> by_type{};                 // the slowest first
  std::vector<BlamedPart> by_replica{}, by_stage{};  // in their order
  // For each worker the lesser of the slowdowns of its replica and of its stage, which is taken for its own (section
  // 4).
  std::vector<double> by_worker{};
  int worst_worker = 0;
  std::vector<Fix> fixes{};        // of the worst worker, the slowest stage and the slowest type of op
  Fix slowest_workers{};           // M_W (equation 5): of the 3 % of workers with the largest slowdowns
  Fix last_stage{};                // M_S
  std::vector<BlamedPath> path{};  // the critical path, the longest parts first
  std::vector<std::string> notes{};
};

// Throws InputError where ops wait for each other in a circle.
Blame blame(RecordedJob job);

}  // namespace tandem
