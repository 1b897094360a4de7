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

enum class Dimension : std::uint8_t { bytes, seconds, bytes_per_second, flops_per_second, hertz };

// Parses one quantity. Returns nothing unless the text is a number, with or without a unit of `dimension`.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

// Returns "expected a bandwidth such as 450GB/s or 200Gbps", for error messages.
std::string_view expectation(Dimension dimension);

// Formats four significant digits with the unit that fits: "1.302 us", "450.0 GB/s".
std::string format_quantity(double value, Dimension dimension);

}  // namespace tandem
