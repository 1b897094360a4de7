#include "reports/paired_gate.h"

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

// Equal counts are enough where nothing else is asked for. Processor time that the launches do not say decides nothing.
PairedResult decided_without_times(const std::vector<Launch>& launches, const PairedGates& gates, double margin) {
  const bool has_counts = launches.size() >= 2 && launches[0].report.counts && launches[1].report.counts;
  const bool are_equal = has_counts && !launches[0].report.asynchronous;
  PairedResult result{.verdict = are_equal && !gates.cpu ? Verdict::ok : Verdict::inconclusive,
                      .margin = margin,
                      .pairs = 1,
                      .decided_by = gates.cpu ? "cpu-time" : "counts"};
  result.change = mean_change(log_ratios_of(launches));
  return result;
}

// Says with which of the two results the check ends; nothing if one of them needs more pairs and may still matter.
std::optional<Verdict> verdict_of_both(const std::optional<PairedResult>& cpu,
                                       const std::optional<PairedResult>& wall) {
  const auto has = [&](Verdict verdict) {
    return (cpu && cpu->verdict == verdict) || (wall && wall->verdict == verdict);
  };
  if (has(Verdict::regressed)) return Verdict::regressed;
  if (!cpu || !wall) return std::nullopt;
  if (has(Verdict::inconclusive)) return Verdict::inconclusive;
  return has(Verdict::improved) ? Verdict::improved : Verdict::ok;
}

}  // namespace

std::optional<PairedGates> gates_from(const std::string& text) {
  PairedGates gates{.counts = false, .cpu = false, .wall = false};
  std::istringstream words(text);
  bool any = false;
  for (std::string word; std::getline(words, word, ','); any = true) {
    if (word == "counts") {
      gates.counts = true;
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

std::vector<double> cpu_log_ratios_of(const std::vector<Launch>& launches) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i + 1 < launches.size(); i += 2) {
    const double one = cpu_time_of_step(launches[i].report);
    const double other = cpu_time_of_step(launches[i + 1].report);
    if (one <= 0 || other <= 0) return {};
    ratios.push_back(launches[i].is_new ? std::log(one / other) : std::log(other / one));
  }
  return ratios;
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
  const std::vector<double> cpu_ratios = gates.cpu ? cpu_log_ratios_of(launches) : std::vector<double>{};
  const bool cpu_counts = !cpu_ratios.empty();
  const bool wall_counts = gates.wall && (!cpu_counts || is_quiet(launches));
  if (!cpu_counts && !gates.wall) return decided_without_times(launches, gates, margin);
  const std::vector<double> wall_ratios = log_ratios_of(launches);
  std::optional<PairedResult> cpu = look_again(cpu_ratios, margin, comparisons);
  std::optional<PairedResult> wall = look_again(wall_ratios, margin, comparisons);
  const std::optional<Verdict> verdict = cpu_counts && wall_counts ? verdict_of_both(cpu, wall)
                                         : cpu_counts              ? (cpu ? std::optional(cpu->verdict) : std::nullopt)
                                                      : (wall ? std::optional(wall->verdict) : std::nullopt);
  if (!verdict) return std::nullopt;
  const bool by_cpu = cpu_counts && (!wall_counts || (cpu && cpu->verdict == *verdict));
  PairedResult result = by_cpu ? *cpu : *wall;
  result.decided_by = by_cpu ? "cpu-time" : "wall-clock";
  if (cpu_counts) {
    // Both figures are shown over the pairs of the one that decided.
    const auto pairs = static_cast<std::ptrdiff_t>(result.pairs);
    const std::vector<double> cpu_part(cpu_ratios.begin(), cpu_ratios.begin() + pairs);
    result.cpu_change = by_cpu ? result.change : change_at(cpu_part, result.level);
    if (by_cpu) result.change = change_at({wall_ratios.begin(), wall_ratios.begin() + pairs}, result.level);
  }
  return result;
}

}  // namespace tandem
