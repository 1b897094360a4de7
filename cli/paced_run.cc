#include "cli/paced_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>
#include <vector>

#include "cli/base/interrupt.h"
#include "reports/base/text_table.h"

namespace tandem {
namespace {

// Changes of pace last for seconds.
void pause() {
  constexpr int kParts = 40;
  constexpr std::chrono::milliseconds kPart{50};
  for (int i = 0; i < kParts; ++i) {
    std::this_thread::sleep_for(kPart);
    check_for_interrupt();
  }
}

using Clock = std::chrono::steady_clock;

struct Attempt {
  PacedRun run;
  Clock::duration took{};
  bool is_steady = false;  // at one pace, and undisturbed

  Nanoseconds step_time() const { return run.result.report.summary.step_time.mean; }
};

MachinePace pace_now(const PacedMeasurement& measurement) {
  constexpr int kLooks = 6;
  std::vector<MachinePace> paces;
  for (int i = 0; i < kLooks; ++i) {
    paces.push_back(measure_pace(measurement.engine, measurement.devices));
    check_for_interrupt();
  }
  return mean_of(paces);
}

Attempt attempt_of(const PacedMeasurement& measurement, const std::function<RunResult()>& measure) {
  MachinePace before;
  if (measurement.usual) before = pace_now(measurement);
  const Clock::time_point begin = Clock::now();
  Attempt attempt{.run = {.result = measure()}};
  attempt.took = Clock::now() - begin;
  Report& report = attempt.run.result.report;
  attempt.is_steady = !report.is_disturbed();
  if (!measurement.usual) return attempt;
  const MachinePace after = pace_now(measurement);
  if (distance_between(before, after) <= 1) {
    attempt.run.pace = mean_of({before, after});
  } else {  // the quickest of several runs is shown, and the quicker pace is more likely to be its own
    attempt.run.pace = quicker_of(before, after);
    attempt.is_steady = false;
    report.notes.push_back("the machine changed its pace during the run: afterwards " + change_text(before, after));
  }
  return attempt;
}

// Whether two steady runs agree, so that no further one is needed.
bool agree(const std::vector<Attempt>& attempts) {
  constexpr double kApart = 0.03;
  std::vector<double> times;
  for (const Attempt& attempt : attempts) {
    if (attempt.is_steady) times.push_back(static_cast<double>(attempt.step_time()));
  }
  std::ranges::sort(times);
  return times.size() > 1 && times[1] <= (1 + kApart) * times[0];
}

// "measured 3 times, steps of 2.81 ms, 3.04 ms, 2.83 ms; the quickest is shown"
std::string times_text(const std::vector<Attempt>& attempts) {
  std::vector<std::string> times;
  bool are_steady = true;
  for (const Attempt& attempt : attempts) {
    times.push_back(time_text(attempt.step_time()));
    are_steady = are_steady && attempt.is_steady;
  }
  return fmt::format("measured {} times, steps of {}; {} is shown", times.size(), fmt::join(times, ", "),
                     are_steady ? "the quickest" : "the quickest of the least disturbed");
}

// Whether the topology was measured on the machine of the report, as far as the names of their processors tell.
bool is_of_machine(const Topology& topology, const Report& measured) {
  const auto processor = topology.facts().measured_with.find("processor");
  return processor != topology.facts().measured_with.end() && measured.machine.starts_with(processor->second);
}

}  // namespace

PacedRun measure_at_pace(const PacedMeasurement& measurement, const std::function<RunResult()>& measure) {
  constexpr std::chrono::seconds kLong{5};  // runs that are not repeated only to see whether they agree
  std::vector<Attempt> attempts;
  while (static_cast<int>(attempts.size()) < measurement.tries) {
    if (measurement.usual && !attempts.empty() && !attempts.back().is_steady) pause();
    attempts.push_back(attempt_of(measurement, measure));
    const bool is_enough = !measurement.usual || attempts.back().took > kLong;
    if (attempts.back().is_steady && is_enough) break;
    if (agree(attempts)) break;
  }
  const auto best = std::ranges::min_element(attempts, {}, [](const Attempt& attempt) {
    return std::tuple(attempt.run.result.report.is_disturbed(), !attempt.is_steady, attempt.step_time());
  });
  if (attempts.size() > 1) best->run.result.report.notes.push_back(times_text(attempts));
  return std::move(best->run);
}

std::shared_ptr<const Topology> topology_at(const std::shared_ptr<const Topology>& topology,
                                            const PacedMeasurement& measurement, const PacedRun& run,
                                            std::vector<std::string>& notes) {
  constexpr double kNoted = 0.3;  // of what is usual from one second to the next
  if (!measurement.usual || !run.pace || !is_of_machine(*topology, run.result.report)) return topology;
  if (distance_between(*measurement.usual, *run.pace) < kNoted) return topology;
  notes.push_back("simulated at the machine's pace around the run: " + change_text(*measurement.usual, *run.pace) +
                  " than when it was calibrated");
  return std::make_shared<const Topology>(at_pace(*topology, *measurement.usual, *run.pace));
}

}  // namespace tandem
