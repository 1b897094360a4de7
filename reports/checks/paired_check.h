// Decides whether a new program is slower than an old one, by launches of both that take turns on one machine.
//
// The unit of repetition is the launch: y is the logarithm of a launch's median step time, and d = y(new) - y(old) of
// two neighbouring launches. The centre of the differences is estimated with an exact interval (signed_rank.h) when
// there are 8, 16 and 32 pairs. The verdict follows from the interval and a margin:
//   regressed      the whole interval is above the margin
//   improved       it is below the margin
//   ok             it is inside the margin: the two are equally fast, as far as the margin says
//   inconclusive   none of these after 32 pairs
// The probability of a wrong "regressed" is at most 0.005 + 0.010 + 0.010 for a true change equal to the margin, and
// far smaller for no change. Where several times decide (paired_gate.h), it is at most the sum of theirs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/base/json_document.h"
#include "reports/base/signed_rank.h"
#include "reports/checks/check.h"

namespace tandem {

// A number of pairs after which the differences are looked at, and the one-sided level of the interval then.
struct PairedLook {
  int pairs;
  double level;
};
inline constexpr PairedLook kPairedLooks[] = {{8, 0.005}, {16, 0.010}, {32, 0.010}};

// One of the two launches of a pair.
struct Launch {
  bool is_new = false;
  Report report;
};

// A phase of the step or a collective. It is shown, but decides nothing.
struct PairedFigure {
  std::string name;     // "per_step.compute"
  double estimate = 0;  // of the change, new / old - 1
  // With its interval at the level that Holm's correction leaves to it. Empty: there are too few pairs for that level.
  std::optional<CentreInterval> change{};
  double adjusted_p_value = 1;  // of the hypothesis of no change, by Holm's correction over all figures
};

// How much of the machine went elsewhere during the launches.
struct PairedDisturbance {
  // With more of them disturbed, the intervals say how uneven the machine was, not how many pairs a quiet one needs.
  static constexpr double kMostForAdvice = 0.1;

  int launches = 0;        // all of them
  int disturbed = 0;       // MachineUse::is_disturbed()
  double median_lost = 0;  // of the disturbed ones: the share of their time that others took

  bool prevents_advice() const { return disturbed > kMostForAdvice * launches; }
  bool operator==(const PairedDisturbance&) const = default;
};

struct PairedResult {
  Verdict verdict = Verdict::inconclusive;
  double margin = 0;                  // 0.03: 3 %
  CentreInterval change{};            // of the step time, new / old - 1
  double level = 0;                   // one-sided level of the interval
  int pairs = 0;                      // that were launched
  std::optional<int> pairs_needed{};  // if inconclusive: about how many would decide; empty: unknown
  std::vector<PairedFigure> figures{};
  PairedDisturbance disturbance{};
  std::string decided_by = "wall-clock";       // the name of a gate: see paired_gate.h
  std::optional<CentreInterval> op_change{};   // of the time of ops, where the launches say it
  std::optional<CentreInterval> cpu_change{};  // of the processor time, likewise
  std::vector<std::string> undecided{};        // gates whose times were too noisy to decide
  std::vector<CountChange> counts{};           // if counts decided: those that differ
  int measured_steps = 0;                      // of a launch, if counts decided
};

// Returns the verdict over the differences so far, or nothing if no look is due at their number, or if this look does
// not decide and is not the last. With several `comparisons`, such as the scenarios of a suite, each gets its share of
// the level for every verdict but "ok".
std::optional<PairedResult> look_at(const std::vector<double>& log_ratios, double margin, int comparisons = 1);
// Repeats the looks that were due and returns the result of the first that decides. For Holm's steps, in which fewer
// comparisons are left once some are decided.
std::optional<PairedResult> look_again(const std::vector<double>& log_ratios, double margin, int comparisons);

// The order of launches, in blocks of two pairs. The seed draws the order of each block: old new new old, or new old
// old new. is_new(i) is for launch i = 0, 1, 2, ...
class LaunchOrder {
 public:
  explicit LaunchOrder(std::uint64_t seed) : seed_(seed) {}
  bool is_new(int launch) const;

 private:
  std::uint64_t seed_;
};

// Returns the figure of the step time by which the launches are compared.
StepFigure compared_figure(std::span<const Launch> launches);
// Returns the logarithm of new / old of a time of the two launches of a pair, both more than 0.
double log_ratio(const Launch& one, const Launch& other, double time_of_one, double time_of_other);
// Returns the change with its interval, whose limits are not numbers if there are too few pairs for the level.
CentreInterval change_at(const std::vector<double>& log_ratios, double level);
// Returns the differences of neighbouring launches: 0 and 1, 2 and 3, ...
std::vector<double> log_ratios_of(const std::vector<Launch>& launches);
// Adds the phases and collectives that all launches have.
void add_figures(PairedResult& result, std::span<const Launch> launches);

// Adds how much the launches were disturbed. If that is too much for advice, removes the number of pairs needed.
void add_disturbance(PairedResult& result, std::span<const Launch> launches);

// Throws InputError if a launch's report is of another job or machine than the first one. `name` is that of the launch
// in the message.
void check_comparable(const Report& report, const Report& first, const std::string& name);

nlohmann::ordered_json paired_check_to_json(const PairedResult& result, const std::vector<Launch>& launches,
                                            std::uint64_t seed);
// What a document says of a check of pairs.
struct StoredPairedCheck {
  std::string title;  // title_of() a launch's report
  PairedResult result;
  std::uint64_t seed = 0;
};
// Throws InputError with everything that is missing or wrong.
StoredPairedCheck paired_check_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);
std::string paired_check_text(const StoredPairedCheck& check);
std::string paired_reason(const PairedResult& result);               // a sentence, which begins with the disturbance
std::string disturbance_text(const PairedDisturbance& disturbance);  // a clause; empty: no launch was disturbed

}  // namespace tandem
