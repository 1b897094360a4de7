// The history of a scenario, a file of JSON lines, one for each launch, and the verdict over a new launch by its
// history.
//
// The launches of one scenario on one machine have a level: the median of the logarithms of their median step times, or
// of the means where steps are uneven (step_time.h), and a spread: their median absolute deviation, scaled to the
// standard deviation of normal noise. A launch is suspect if it is beyond the margin and its robust z is beyond a
// limit. Two more launches decide: the verdict follows from the median of the three. Simulations repeat exactly, so
// each run is equal to the one before it or not.
//
// Threads: any. Files are locked against other processes and threads that use these functions.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/base/change_points.h"
#include "reports/base/json_document.h"
#include "reports/checks/check.h"

namespace tandem {

// A line of the file.
struct HistoryLaunch {
  std::string scenario;
  std::string scenario_hash;
  std::string engine;
  std::string machine;  // Report::machine and Report::system; empty for simulations
  std::string commit;   // empty: unknown
  std::string date;     // "2026-11-22T12:05:00Z"
  std::string tandem_version;
  StepTime step_time;
  bool disturbed = false;
  Verdict verdict = Verdict::ok;  // of the check that launched it
  bool accepted = false;          // a new level begins here
  bool exact = false;             // a simulation

  // Returns whether both are of the same scenario, engine and machine. Measured scenarios must have the same content;
  // simulated ones only the same name, since their history shows what changes their times.
  bool is_of(const HistoryLaunch& other) const;
};

HistoryLaunch history_launch(const Report& report, std::string commit, std::string date);

// Returns the launches of a file, in its order; none if there is no file. If `texts` are given, such as hashes of
// scenarios, only the last kMostOfText lines with each of them are read, however long the file is. Throws InputError
// for a file that is no history, with each line that is wrong.
inline constexpr std::size_t kMostOfText = 10'000;
std::vector<HistoryLaunch> read_history(const std::filesystem::path& file, std::span<const std::string> texts = {});
// Appends lines, all of them or none, even while other processes append to the file. Throws Error for a file that
// cannot be written, and InputError for one whose last line is incomplete. read_history() tells whether the file is a
// history.
void append_history(const std::filesystem::path& file, std::span<const HistoryLaunch> launches);
// Throws in advance what append_history() would throw for lack of permission.
void check_appendable(const std::filesystem::path& file);

struct HistoryLimits {
  double margin = kMeasuredTolerance;  // a change up to it does not matter
  double z = 3.5;    // Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993): beyond it, an outlier
  int fewest = 20;   // launches that make a level
  int window = 50;   // the last launches that count
  int launches = 3;  // to confirm a suspect, itself included
};

// What the launches of one series let us expect of the next one.
struct HistoryLevel {
  int launches = 0;
  StepFigure figure = &StepTime::median;  // of each launch
  Nanoseconds step_time = 0;              // the level
  double spread = 0;                      // relative, at least the clock's nanosecond

  double change_of(Nanoseconds step_time) const;  // relative to the level
  double z_of(Nanoseconds step_time) const;
};

// Returns the launches of `history` that count for the level of `launch`: those of its series that were undisturbed and
// no regressions, from the last accepted one on, at most HistoryLimits::window of them.
std::vector<HistoryLaunch> level_launches(std::span<const HistoryLaunch> history, const HistoryLaunch& launch,
                                          const HistoryLimits& limits);
// Returns the figure by which launches of one series are compared: the mean for simulations, whose times are exact.
StepFigure compared_figure(std::span<const HistoryLaunch> launches);
// Returns nothing if there are too few launches.
std::optional<HistoryLevel> level_of(std::span<const HistoryLaunch> launches, const HistoryLimits& limits);
bool is_suspect(const HistoryLevel& level, Nanoseconds step_time, const HistoryLimits& limits);

struct HistoryResult {
  Verdict verdict = Verdict::inconclusive;
  int known = 0;                        // launches that count for the level
  std::optional<HistoryLevel> level{};  // empty: they are too few
  Nanoseconds step_time = 0;            // the median of the new launches' figures
  double change = 0;                    // from the level
  double z = 0;
  double visible = 0;                     // the least change that would be suspect
  std::vector<HistoryLaunch> launches{};  // the new ones, with the verdict
  std::string reason{};                   // a sentence
};

// Returns the verdict over the new launches of a scenario: a single one, or a suspect and those launched to confirm it.
HistoryResult judge_launches(std::span<const HistoryLaunch> history, std::vector<HistoryLaunch> launches,
                             const HistoryLimits& limits);

// Returns the verdict over a simulation, by the last one of its series that was accepted or equal to its predecessor.
HistoryResult judge_exact(std::span<const HistoryLaunch> history, HistoryLaunch launch);

nlohmann::ordered_json history_check_to_json(const HistoryResult& result, const HistoryLimits& limits);
// Returns what the text shows of a document. Throws InputError with everything that is missing or wrong.
HistoryResult history_check_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);
std::string history_check_text(const HistoryResult& result);

// The launches of one scenario on one machine, for people. Change points are searched for in at most this number of the
// last launches of a series.
inline constexpr std::size_t kMostSearched = 1000;

struct HistorySeries {
  std::string text() const;  // "digits on Intel Xeon (2 cores)", "digits-sim, simulated on engine sim"
  bool is_exact() const { return launches.back().exact; }

  std::vector<HistoryLaunch> launches;
  // Change points among the undisturbed launches; every difference for simulations. Indices into `launches`. For
  // display, not for verdicts.
  std::vector<ChangePoint> changes{};
  std::size_t earlier = 0;    // launches before these, dropped by last_of()
  bool is_shortened() const;  // whether `changes` covers only the last launches
};

// Returns the series of a file in the order of their first launches.
std::vector<HistorySeries> series_of(std::vector<HistoryLaunch> history, double margin);
// Returns the last launches of a series, and the changes among them: as much as a page shows of a long history.
HistorySeries last_of(const HistorySeries& series, std::size_t most);

nlohmann::ordered_json history_to_json(const std::vector<HistorySeries>& series, double margin);
struct StoredHistory {
  std::vector<HistorySeries> series;
  double margin = 0;
};
// Throws InputError with everything that is missing or wrong.
StoredHistory history_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);
std::string history_text(const std::vector<HistorySeries>& series, double margin);

}  // namespace tandem
