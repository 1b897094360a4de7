#include "reports/errors/error_interval.h"

#include <fmt/format.h>

#include <cmath>

namespace tandem {

ErrorInterval interval_of_error(double error, double level) {
  return ErrorInterval{.level = level, .low = -error, .high = error}.of_predicted();
}

std::string interval_text(const ErrorInterval& interval) {
  if (interval.high >= ErrorInterval::kNoLimit) return fmt::format("{:+.0f} % and more", interval.low * 100);
  return fmt::format("{:+.0f}..{:+.0f} %", interval.low * 100, interval.high * 100);
}

std::string level_text(double level) {
  constexpr int kMost = 20;
  for (int all = 2; all < kMost; ++all) {
    const double within = level * all;
    if (std::abs(within - std::round(within)) < 0.01) return fmt::format("{:.0f} of {}", within, all);
  }
  return fmt::format("{:.0f} of {}", level * kMost, kMost);
}

}  // namespace tandem
