#include "reports/run/expectation.h"

#include <algorithm>
#include <array>
#include <vector>

#include "reports/run/report.h"

namespace tandem {
namespace {

// Returns how long a device waits for slower ranks while nothing else runs on it.
Nanoseconds skew_of(const Report& report) {
  std::int64_t waiting = 0, devices = 0;
  for (const RankWaiting& rank : report.summary.ranks) {
    waiting += rank.waiting * rank.devices;
    devices += rank.devices;
  }
  return devices == 0 ? 0 : std::min(waiting / devices, report.summary.per_step.exposed_communication);
}

std::array<GapTerm, 7> terms_of(const Report& report) {
  const PerStep& step = report.summary.per_step;
  const Nanoseconds skew = skew_of(report);
  return {{{"compute efficiency", step.compute},
           {"updates", step.update},
           {"input", step.exposed_input},
           {"skew", skew},
           {"exposed communication", step.exposed_communication - skew},
           {"other work", step.other},
           {"idle and launches", step.idle}}};
}

}  // namespace

double Expectation::gap_of(Nanoseconds measured) const {
  return step_time > 0 ? static_cast<double>(measured) / static_cast<double>(step_time) - 1 : 0;
}

std::optional<bool> Expectation::is_normal(Nanoseconds measured) const {
  const ErrorInterval* const interval = band.widest();
  return interval == nullptr ? std::nullopt : std::optional(interval->contains(gap_of(measured)));
}

Expectation expectation_of(const Report& measured, const Report& predicted) {
  Expectation expectation{.topology = predicted.topology,
                          .step_time = predicted.summary.step_time.mean,
                          .band = predicted.expected_error.value_or(ErrorBand{}),
                          .largest = {}};
  const bool is_slower = measured.summary.step_time.mean > expectation.step_time;
  std::array<GapTerm, 7> terms = terms_of(measured);
  const std::array<GapTerm, 7> expected = terms_of(predicted);
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i].time -= expected[i].time;
  const auto largest = std::max_element(terms.begin(), terms.end(), [&](const GapTerm& a, const GapTerm& b) {
    return is_slower ? a.time < b.time : a.time > b.time;
  });
  const bool explains = is_slower ? largest->time > 0 : largest->time < 0;
  const bool has_terms = measured.has_parts() && predicted.has_parts();
  if (has_terms && explains && measured.summary.step_time.mean != expectation.step_time) expectation.largest = *largest;
  return expectation;
}

}  // namespace tandem
