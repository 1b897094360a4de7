#include "reports/checks/paired_gate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <sstream>

namespace tandem {
namespace {

double cpu_time_of_step(const Report& report) {
  const int steps = report.steps - report.warmup_steps;
  if (!report.machine_use || steps <= 0) return 0;
  return static_cast<double>(report.machine_use->own) / steps;
}

bool is_quiet(const std::vector<Launch>& launches) {
  PairedResult result;
  add_disturbance(result, launches);
  return !result.disturbance.prevents_advice();
}

CentreInterval mean_change(const std::vector<double>& log_ratios) {
  double sum = 0;
  for (const double ratio : log_ratios) sum += ratio;
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const double mean = log_ratios.empty() ? kUnknown : std::expm1(sum / static_cast<double>(log_ratios.size()));
  return {.estimate = mean, .lower = kUnknown, .upper = kUnknown};
}

std::optional<PairedResult> decide_by_counts(const std::vector<Launch>& launches, double margin) {
  std::vector<CountChange> changes = changed_counts(launches);
  if (changes.empty()) return std::nullopt;
  PairedResult result{
      .verdict = is_less(changes) ? Verdict::improved : Verdict::regressed, .margin = margin, .pairs = 1};
  const std::vector<Launch> pair(launches.begin(), launches.begin() + 2);
  result.change = mean_change(log_ratios_of(pair));
  result.decided_by = "counts";
  result.counts = std::move(changes);
  result.measured_steps = pair.front().report.steps - pair.front().report.warmup_steps;
  return result;
}

// Equal counts are enough where nothing else is asked for. Times that the launches do not say decide nothing.
PairedResult decided_without_times(const std::vector<Launch>& launches, const PairedGates& gates, double margin) {
  const bool has_counts = launches.size() >= 2 && launches[0].report.counts && launches[1].report.counts;
  const bool are_equal = has_counts && !launches[0].report.asynchronous;
  const bool wants_times = gates.ops || gates.cpu;
  PairedResult result{.verdict = are_equal && !wants_times ? Verdict::ok : Verdict::inconclusive,
                      .margin = margin,
                      .pairs = 1,
                      .decided_by = gates.ops   ? "op-time"
                                    : gates.cpu ? "cpu-time"
                                                : "counts"};
  result.change = mean_change(log_ratios_of(launches));
  return result;
}

// One of the times by which the launches are compared.
struct Gate {
  const char* name;
  std::vector<double> log_ratios;
  std::optional<PairedResult> result;  // empty: more pairs are needed
};

// Returns the differences of neighbouring launches in the logarithm of a time. Empty: a launch does not say it.
template <typename TimeOf>
std::vector<double> log_ratios_by(const std::vector<Launch>& launches, const TimeOf& time_of) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i + 1 < launches.size(); i += 2) {
    const double one = time_of(launches[i].report), other = time_of(launches[i + 1].report);
    if (one <= 0 || other <= 0) return {};
    ratios.push_back(log_ratio(launches[i], launches[i + 1], one, other));
  }
  return ratios;
}

std::vector<Gate> times_of(const std::vector<Launch>& launches, const PairedGates& gates) {
  std::vector<Gate> times;
  const auto add = [&](const char* name, std::vector<double> log_ratios) {
    if (!log_ratios.empty()) times.push_back({name, std::move(log_ratios), std::nullopt});
  };
  if (gates.ops) {
    add("op-time", log_ratios_by(launches, [](const Report& report) { return static_cast<double>(report.op_time); }));
  }
  if (gates.cpu) add("cpu-time", log_ratios_by(launches, cpu_time_of_step));
  if (gates.wall && (times.empty() || is_quiet(launches))) add("wall-clock", log_ratios_of(launches));
  return times;
}

// Returns the gate whose result is the check's; null: more pairs are needed.
const Gate* deciding(const std::vector<Gate>& times) {
  for (const Gate& gate : times) {
    if (gate.result && gate.result->verdict == Verdict::regressed) return &gate;
  }
  const bool are_complete = std::ranges::all_of(times, [](const Gate& gate) { return gate.result.has_value(); });
  return are_complete ? &times.front() : nullptr;
}

// Shows the change of each time: over the pairs that decided it, or over all.
void show_changes(const std::vector<Launch>& launches, const std::vector<Gate>& times, PairedResult& result) {
  result.change = change_at(log_ratios_of(launches), result.level);
  for (const Gate& gate : times) {
    const CentreInterval change = gate.result ? gate.result->change : change_at(gate.log_ratios, result.level);
    const std::string_view name = gate.name;
    (name == "op-time"    ? result.op_change.emplace()
     : name == "cpu-time" ? result.cpu_change.emplace()
                          : result.change) = change;
    if (gate.result && gate.result->verdict == Verdict::inconclusive) result.undecided.emplace_back(name);
  }
}

}  // namespace

std::optional<PairedGates> gates_from(const std::string& text) {
  PairedGates gates{.counts = false, .ops = false, .cpu = false, .wall = false};
  std::istringstream words(text);
  bool any = false;
  for (std::string word; std::getline(words, word, ','); any = true) {
    if (word == "counts") {
      gates.counts = true;
    } else if (word == "op-time") {
      gates.ops = true;
    } else if (word == "cpu-time") {
      gates.cpu = true;
    } else if (word == "wall-clock") {
      gates.wall = true;
    } else {
      return std::nullopt;
    }
  }
  return any && !text.ends_with(',') ? std::optional(gates) : std::nullopt;
}

std::vector<CountChange> changed_counts(const std::vector<Launch>& launches) {
  if (launches.size() < 2) return {};
  const Launch& one = launches[0].is_new ? launches[0] : launches[1];
  const Launch& other = launches[0].is_new ? launches[1] : launches[0];
  if (!one.report.counts || !other.report.counts || one.report.asynchronous) return {};
  return count_changes(*one.report.counts, *other.report.counts);
}

std::optional<PairedResult> decide(const std::vector<Launch>& launches, const PairedGates& gates, double margin,
                                   int comparisons) {
  if (gates.counts) {
    if (auto result = decide_by_counts(launches, margin)) return result;
  }
  std::vector<Gate> times = times_of(launches, gates);
  if (times.empty()) return decided_without_times(launches, gates, margin);
  for (Gate& gate : times) gate.result = look_again(gate.log_ratios, margin, comparisons);
  const Gate* const decided = deciding(times);
  if (decided == nullptr) return std::nullopt;
  PairedResult result = *decided->result;
  result.decided_by = decided->name;
  result.pairs = static_cast<int>(launches.size()) / 2;
  show_changes(launches, times, result);
  return result;
}

}  // namespace tandem
