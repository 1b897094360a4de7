#include "scenarios/faults/durations.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "topologies/base/units.h"

namespace tandem {

std::optional<double> parse_duration(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 3> kLong{{{"min", 60}, {"h", 3600}, {"d", 86400}}};
  for (const auto& [unit, seconds] : kLong) {
    if (!text.ends_with(unit)) continue;
    std::string_view number = text.substr(0, text.size() - unit.size());
    if (number.ends_with(' ')) number.remove_suffix(1);
    // A number without a unit is one of seconds.
    const bool is_number = !number.empty() && number.back() >= '0' && number.back() <= '9';
    const auto value = is_number ? parse_quantity(number, Dimension::seconds) : std::nullopt;
    return value ? std::optional(*value * seconds) : std::nullopt;
  }
  return parse_quantity(text, Dimension::seconds);
}

std::optional<std::int64_t> parse_steps(std::string_view text) {
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const bool has_leading_zero = text.starts_with("0") && end != text.data() + 1;
  const bool is_number = error == std::errc{} && !has_leading_zero;
  return is_number && (rest == " steps" || rest == " step") ? std::optional(steps) : std::nullopt;
}

double read_duration(const YamlReader& value, bool zero_allowed) {
  if (!value) return 0;
  if (!value.is_scalar()) {
    value.error("expected a time such as 30s, 6min or 8h");
    return 0;
  }
  const std::string text = value.text();
  if (text.empty()) return 0;
  const std::optional<double> seconds = parse_duration(text);
  if (!seconds) {
    value.error(fmt::format("expected a time such as 30s, 6min or 8h, found '{}'", text));
    return 0;
  }
  if (*seconds < 0 || (*seconds == 0 && !zero_allowed) || *seconds > kMostDurationS) {
    value.error(fmt::format("must be {} to 30 years, found {}", zero_allowed ? "0" : "more than 0", text));
    return 0;
  }
  return *seconds;
}

std::optional<double> read_optional_duration(const YamlReader& value) {
  return value ? std::optional(read_duration(value)) : std::nullopt;
}

}  // namespace tandem
