// The history of a scenario: a file of JSON lines, one for each launch, and what it says of a new one.
//
// The launches of one scenario on one machine have a level: the median of the logarithms of their median step times,
// and a spread: their median absolute deviation, scaled to the standard deviation of normal noise. A launch is suspect
// if it is beyond the margin and its robust z is beyond a limit. Two more launches confirm it or not: the verdict goes
// by the median of the three. Simulations repeat exactly: each run is equal to the one before it or not.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/change_points.h"
#include "reports/check.h"

namespace tandem {

// A line of the file.
struct HistoryLaunch {
  std::string scenario;
  std::string scenario_hash;
  std::string engine;
  std::string machine;  // Report::machine; empty for simulations
  std::string commit;   // empty: not known
  std::string date;     // "2026-11-22T12:05:00Z"
  std::string tandem_version;
  StepTime step_time;
  bool disturbed = false;
  Verdict verdict = Verdict::ok;  // of the check that launched it
  bool accepted = false;          // a new level begins here
  bool exact = false;             // a simulation

  // Whether it is of the scenario, the engine and the machine of the other one. Measured scenarios have the same
  // content; simulated ones the same name, since their history is about what changes their times.
  bool is_of(const HistoryLaunch& other) const;
};

HistoryLaunch history_launch(const Report& report, std::string commit, std::string date);

// The launches of a file, in its order: all, or those of the lines with one of these texts, such as hashes of
// scenarios; other lines are then skipped unread. Throws InputError with each line that is wrong; empty if there is no
// file.
std::vector<HistoryLaunch> read_history(const std::filesystem::path& file, std::span<const std::string> texts = {});
// Adds lines at the end, whole or not at all, whoever else writes there. Throws Error for a file that cannot be
// written, and InputError for one whose last line is cut.
void append_history(const std::filesystem::path& file, std::span<const HistoryLaunch> launches);
// Throws beforehand what append_history() would throw for want of permission.
void check_appendable(const std::filesystem::path& file);

struct HistoryLimits {
  double margin = kMeasuredTolerance;  // a change up to it does not matter
  double z = 3.5;    // Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993): beyond it, an outlier
  int fewest = 20;   // launches that make a level
  int window = 50;   // the last launches that count
  int launches = 3;  // to confirm a suspect, itself included
};

// What the launches of one series say of the next one.
struct HistoryLevel {
  int launches = 0;
  Nanoseconds step_time = 0;  // the level
  double spread = 0;          // relative, at least the clock's nanosecond

  double change_of(Nanoseconds step_time) const;  // relative to the level
  double z_of(Nanoseconds step_time) const;
};

// The launches of `history` that count for the level of `launch`: of its series, undisturbed, no regressions, since the
// last one that was accepted, at most HistoryLimits::window of them.
std::vector<HistoryLaunch> level_launches(std::span<const HistoryLaunch> history, const HistoryLaunch& launch,
                                          const HistoryLimits& limits);
// Empty: there are too few launches.
std::optional<HistoryLevel> level_of(std::span<const HistoryLaunch> launches, const HistoryLimits& limits);
bool is_suspect(const HistoryLevel& level, Nanoseconds step_time, const HistoryLimits& limits);

struct HistoryResult {
  Verdict verdict = Verdict::inconclusive;
  int known = 0;                        // launches that count for the level
  std::optional<HistoryLevel> level{};  // empty: they are too few
  Nanoseconds step_time = 0;            // the median of the new launches
  double change = 0;                    // from the level
  double z = 0;
  double visible = 0;                     // the least change that would be suspect
  std::vector<HistoryLaunch> launches{};  // the new ones, with the verdict
  std::string reason{};                   // a sentence
};

// The verdict over the new launches of a scenario: one, or the suspect and those that confirm it or do not.
HistoryResult judge_launches(std::span<const HistoryLaunch> history, std::vector<HistoryLaunch> launches,
                             const HistoryLimits& limits);

// The verdict over a simulation: beside the last one of its series that was accepted, or equal to its predecessor.
HistoryResult judge_exact(std::span<const HistoryLaunch> history, HistoryLaunch launch);

nlohmann::ordered_json history_check_to_json(const HistoryResult& result, const HistoryLimits& limits);
std::string history_check_text(const HistoryResult& result);

// The launches of one scenario on one machine, for people.
// Change points are searched for in so many of the last launches of a series.
inline constexpr std::size_t kMostSearched = 1000;

struct HistorySeries {
  std::string text() const;  // "digits on Intel Xeon (2 cores)", "digits-sim, simulated on engine sim"
  bool is_exact() const { return launches.back().exact; }

  std::vector<HistoryLaunch> launches;
  // Found in the undisturbed ones; of simulations every difference. Indices into `launches`. For display, not for
  // verdicts.
  std::vector<ChangePoint> changes{};
  bool is_shortened = false;  // change points of the last launches only
};

// The series of a file in the order of their first launches.
std::vector<HistorySeries> series_of(std::span<const HistoryLaunch> history, double margin);

nlohmann::ordered_json history_to_json(const std::vector<HistorySeries>& series, double margin);
std::string history_text(const std::vector<HistorySeries>& series, double margin);

}  // namespace tandem
