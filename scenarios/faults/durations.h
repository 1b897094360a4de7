// Durations of jobs as people write them: "90s", "6min", "8h", "54d"; a bare number is in seconds.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "topologies/base/strict_yaml.h"

namespace tandem {

inline constexpr double kMostDurationS = 1e9;  // some 30 years

// Returns the seconds, or nothing unless the text is a number, with or without a unit from ns to d.
std::optional<double> parse_duration(std::string_view text);

// Returns the number of "500 steps" or "1 step"; nothing for any other text.
std::optional<std::int64_t> parse_steps(std::string_view text);

// Reads a duration from 0 (greater than 0 without `zero_allowed`) to kMostDurationS.
double read_duration(const YamlReader& value, bool zero_allowed = true);

// Reads the duration, if there is a value.
std::optional<double> read_optional_duration(const YamlReader& value);

}  // namespace tandem
