#include "topologies/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "topologies/base/error.h"

namespace tandem {
namespace {

struct Scale {
  std::string_view name;
  double factor;
};

constexpr std::array<Scale, 12> kPrefixes{{{"Ki", 1024.0},
                                           {"Mi", 1048576.0},
                                           {"Gi", 1073741824.0},
                                           {"Ti", 1099511627776.0},
                                           {"Pi", 1125899906842624.0},
                                           {"k", 1e3},
                                           {"K", 1e3},
                                           {"M", 1e6},
                                           {"G", 1e9},
                                           {"T", 1e12},
                                           {"P", 1e15},
                                           {"E", 1e18}}};

// A time is divided rather than multiplied by 1e-6: "3us" is then exactly the double 3e-6.
constexpr std::array<Scale, 6> kParts{
    {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"\u00b5s", 1e6}, {"ns", 1e9}, {"ps", 1e12}}};

constexpr std::array<Scale, 4> kSizes{{{"B", 1}, {"bytes", 1}, {"b", 8}, {"bit", 8}}};
constexpr std::array<Scale, 7> kBandwidths{
    {{"B/s", 1}, {"Bps", 1}, {"bytes/s", 1}, {"b/s", 8}, {"bps", 8}, {"bit/s", 8}, {"bits/s", 8}}};
constexpr std::array<Scale, 1> kFrequencies{{{"Hz", 1}}};
constexpr std::array<Scale, 1> kPowers{{{"W", 1}}};
constexpr std::array<Scale, 5> kRates{{{"FLOPS", 1}, {"FLOP/s", 1}, {"flop/s", 1}, {"flops", 1}, {"Flop/s", 1}}};

struct Number {
  double value;
  std::string_view rest;
};

// A plain decimal number at the start of `text`: no hex, no leading zeros, no inf or nan.
std::optional<Number> leading_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text;
  if (negative || text.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  digits.remove_prefix(static_cast<std::size_t>(end - digits.data()));
  return Number{negative ? -value : value, digits};
}

std::optional<double> unit_divisor(std::string_view unit, std::span<const Scale> units) {
  for (const Scale& scale : units) {
    if (scale.name == unit) return scale.factor;
  }
  return std::nullopt;
}

std::optional<double> scaled(double value, std::string_view unit, std::span<const Scale> units) {
  if (const auto divisor = unit_divisor(unit, units)) return value / *divisor;
  for (const Scale& prefix : kPrefixes) {
    if (!unit.starts_with(prefix.name)) continue;
    if (const auto divisor = unit_divisor(unit.substr(prefix.name.size()), units)) {
      return value * prefix.factor / *divisor;
    }
  }
  return std::nullopt;
}

std::optional<double> in_base_unit(double value, std::string_view unit, Dimension dimension) {
  if (unit.empty()) return value;
  switch (dimension) {
    case Dimension::bytes:
      return scaled(value, unit, kSizes);
    case Dimension::seconds:
      if (const auto divisor = unit_divisor(unit, kParts)) return value / *divisor;
      return std::nullopt;
    case Dimension::bytes_per_second:
      return scaled(value, unit, kBandwidths);
    case Dimension::flops_per_second:
      return scaled(value, unit, kRates);
    case Dimension::hertz:
      return scaled(value, unit, kFrequencies);
    case Dimension::watts:
      return scaled(value, unit, kPowers);
  }
  TANDEM_UNREACHABLE("a Dimension outside its enumerators");
}

struct NamedLimits {
  Limits limits{};
  std::string_view text{};
};

// The one table of what a figure with a unit can be.
const NamedLimits& named_limits(Dimension dimension) {
  static constexpr NamedLimits kBytes{{1, 1e18}, "1 B to 1 EB"};
  static constexpr NamedLimits kSeconds{{1e-15, 86400}, "1 fs to 1 day"};
  static constexpr NamedLimits kBytesPerSecond{{1, 1e18}, "1 B/s to 1 EB/s"};
  static constexpr NamedLimits kFlops{{1e3, 1e21}, "1 kFLOPS to 1,000 EFLOPS"};
  static constexpr NamedLimits kHertz{{1e3, 1e12}, "1 kHz to 1 THz"};
  static constexpr NamedLimits kWatts{{1e-3, 1e9}, "1 mW to 1 GW"};
  switch (dimension) {
    case Dimension::bytes:
      return kBytes;
    case Dimension::seconds:
      return kSeconds;
    case Dimension::bytes_per_second:
      return kBytesPerSecond;
    case Dimension::flops_per_second:
      return kFlops;
    case Dimension::hertz:
      return kHertz;
    case Dimension::watts:
      return kWatts;
  }
  TANDEM_UNREACHABLE("a Dimension outside its enumerators");
}

// Units to print in, smallest first.
std::span<const Scale> printed_units(Dimension dimension) {
  static constexpr std::array<Scale, 6> kBytes{
      {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}}};
  static constexpr std::array<Scale, 4> kSeconds{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
  static constexpr std::array<Scale, 5> kBytesPerSecond{
      {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}};
  static constexpr std::array<Scale, 6> kFlops{
      {{"FLOPS", 1}, {"kFLOPS", 1e3}, {"MFLOPS", 1e6}, {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}}};
  static constexpr std::array<Scale, 4> kHertz{{{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}}};
  static constexpr std::array<Scale, 3> kWatts{{{"W", 1}, {"kW", 1e3}, {"MW", 1e6}}};
  switch (dimension) {
    case Dimension::bytes:
      return kBytes;
    case Dimension::seconds:
      return kSeconds;
    case Dimension::bytes_per_second:
      return kBytesPerSecond;
    case Dimension::flops_per_second:
      return kFlops;
    case Dimension::hertz:
      return kHertz;
    case Dimension::watts:
      return kWatts;
  }
  TANDEM_UNREACHABLE("a Dimension outside its enumerators");
}

}  // namespace

std::optional<double> parse_quantity(std::string_view text, Dimension dimension) {
  const auto number = leading_number(text);
  if (!number) return std::nullopt;
  std::string_view unit = number->rest;
  const bool spaced = unit.starts_with(' ');
  if (spaced) unit.remove_prefix(1);
  if (spaced && unit.empty()) return std::nullopt;
  const auto value = in_base_unit(number->value, unit, dimension);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::string_view expectation(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "expected a size such as 64MiB or 80GB";
    case Dimension::seconds:
      return "expected a time such as 1.3us or 20ms";
    case Dimension::bytes_per_second:
      return "expected a bandwidth such as 450GB/s or 200Gbps";
    case Dimension::flops_per_second:
      return "expected a rate such as 19.5TFLOPS";
    case Dimension::hertz:
      return "expected a clock such as 1.98GHz";
    case Dimension::watts:
      return "expected a power such as 10.2kW";
  }
  TANDEM_UNREACHABLE("a Dimension outside its enumerators");
}

Limits limits_of(Dimension dimension) {
  return named_limits(dimension).limits;
}

std::string_view limits_text(Dimension dimension) {
  return named_limits(dimension).text;
}

std::string quantity_problem(double value, Dimension dimension, std::string_view written, bool zero_allowed) {
  if (value == 0 && zero_allowed) return "";
  if (value < 0 && zero_allowed) return fmt::format("must not be negative, found {}", written);
  if (value <= 0) return fmt::format("must be greater than 0, found {}", written);
  const auto& [limits, text] = named_limits(dimension);
  if (value >= limits.least && value <= limits.most) return "";
  return fmt::format("must be {}from {}, found {}", zero_allowed ? "0 or " : "", text, written);
}

std::string format_quantity(double value, Dimension dimension) {
  const std::span<const Scale> units = printed_units(dimension);
  const Scale& base = dimension == Dimension::seconds ? units.back() : units.front();
  if (value == 0 || !std::isfinite(value)) return fmt::format("{} {}", value, base.name);
  const double magnitude = std::abs(value);
  const Scale* unit = &units.front();
  for (const Scale& candidate : units) {
    if (magnitude >= candidate.factor * 0.99995) unit = &candidate;  // 999.96 us is printed as 1.000 ms
  }
  const double shown = value / unit->factor;
  if (dimension == Dimension::bytes && unit == &units.front()) return fmt::format("{:.4g} B", shown);
  const int before_point = std::abs(shown) < 1 ? 1 : static_cast<int>(std::log10(std::abs(shown) * 1.00005)) + 1;
  return fmt::format("{:.{}f} {}", shown, std::max(0, 4 - before_point), unit->name);
}

}  // namespace tandem
