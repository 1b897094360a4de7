#include "scenarios/plan/point_pool.h"

#include <algorithm>

#include "scenarios/sweep/point_runner.h"
#include "scenarios/sweep/process_pool.h"
#include "scenarios/sweep/results_file.h"

namespace tandem {

void PointPool::run(const std::vector<int>& jobs, bool is_whole, const Events& events) const {
  const std::vector<int> large = run_on(processes_, jobs, is_whole, events);
  for (const int job : run_on(1, large, is_whole, events))
    events.lost(static_cast<std::size_t>(job), "this machine is too small for it");
}

std::vector<int> PointPool::run_on(int processes, const std::vector<int>& jobs, bool is_whole,
                                   const Events& events) const {
  std::vector<int> large;
  if (jobs.empty()) return large;
  const auto lose = [&](int job, const std::string& why) { events.lost(static_cast<std::size_t>(job), why); };
  const auto take = [&](int job, const std::string& line) {
    if (line.empty()) return large.push_back(job);
    const SweptPoint point = point_of_line(line, "a result", job).point;
    if (point.state == PointState::lost) return lose(job, point.problem);
    events.done(static_cast<std::size_t>(job), line);
  };
  PointRunner runner(space_, points_, files_, topology_, 1.0 / processes);
  ProcessPool pool(std::min(processes, static_cast<int>(jobs.size())),
                   [&](int job) { return runner.line(job, is_whole); });
  pool.run(jobs, {.done = take, .lost = lose, .tick = events.tick, .is_wanted = events.is_wanted});
  return large;
}

}  // namespace tandem
