// Quantities as people write them: "450GB/s", "1.3us", "64 MiB", "19.5 TFLOPS", "1.98GHz".
//
// Base units: bytes, seconds, bytes/s, flop/s, Hz. kB, MB, GB are powers of 1000, KiB, MiB, GiB of 1024, and a
// lower-case bit suffix (Gbps, Gb/s) counts bits. A bare number is in the base unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

enum class Dimension : std::uint8_t { bytes, seconds, bytes_per_second, flops_per_second, hertz, watts };

// Parses one quantity. Returns nothing unless the text is a number, with or without a unit of `dimension`.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

// Returns "expected a bandwidth such as 450GB/s or 200Gbps", for error messages.
std::string_view expectation(Dimension dimension);

// The figures that a machine, a job or a measurement can physically have. They are generous: what lies outside is a
// slip of a unit or of a digit. Every reader of files and options refuses it.
struct Limits {
  double least = 0, most = 0;  // both included
};
Limits limits_of(Dimension dimension);
std::string_view limits_text(Dimension dimension);  // "1 kHz to 1 THz"

// Figures without a unit.
inline constexpr Limits kEfficiencies{1e-6, 1};  // the part of a peak that is reached
inline constexpr Limits kSlowdowns{1, 1e3};      // how many times as long something takes
inline constexpr Limits kOversubscriptions{1e-3, 1e6};
inline constexpr Limits kSpreads{0, 1e3};    // relative to the median
inline constexpr Limits kRates{1e-9, 1e18};  // examples, tokens, ... of one second

// Says why a machine cannot have this figure, "must be from 1 kHz to 1 THz, found 1e-300"; empty if it can. `written`
// is the figure as the file or the option has it.
std::string quantity_problem(double value, Dimension dimension, std::string_view written, bool zero_allowed = false);

// Formats four significant digits with the unit that fits: "1.302 us", "450.0 GB/s".
std::string format_quantity(double value, Dimension dimension);

}  // namespace tandem
