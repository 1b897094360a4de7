// How far measured times have been from predicted ones.
#pragma once

#include <string>

namespace tandem {

// A share `level` of measured times was between 1 + low and 1 + high times what was predicted. Of memory, peaks.
struct ErrorInterval {
  static constexpr double kNoLimit = 1e9;  // of `high`

  double level = 0.95;
  double low = 0, high = 0;  // 0.1 is 10 %: measured took 10 % more than predicted

  // `relative`: measured / predicted - 1
  bool contains(double relative) const { return low <= relative && relative <= high; }
  // Returns it for errors that are predicted / measured - 1.
  ErrorInterval of_predicted() const {
    return {.level = level, .low = 1 / (1 + high) - 1, .high = low > -1 ? 1 / (1 + low) - 1 : kNoLimit};
  }
  bool operator==(const ErrorInterval&) const = default;
};

// The levels at which intervals are stated where enough sites have measured.
inline constexpr double kUsualLevel = 0.8, kWideLevel = 0.95;

// Returns the interval of measured values of which |predicted / measured - 1| is within `error`, which earlier versions
// and calibrations state.
ErrorInterval interval_of_error(double error, double level = kWideLevel);

std::string interval_text(const ErrorInterval& interval);  // "-19..+35 %"
// Returns the level in words: "19 of 20", "4 of 5"; others by the site that is still to come, "2 of 3".
std::string level_text(double level);

}  // namespace tandem
