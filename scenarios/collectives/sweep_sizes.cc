#include "scenarios/collectives/sweep_sizes.h"

#include <charconv>
#include <cmath>

#include "topologies/base/error.h"

namespace tandem {

std::optional<std::int64_t> parse_sweep_size(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) return {};
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double scale = 1;
  if (!unit.empty()) {
    switch (unit.front()) {
      case 'k':
      case 'K':
        scale = 1024;
        break;
      case 'm':
      case 'M':
        scale = 1024.0 * 1024;
        break;
      case 'g':
      case 'G':
        scale = 1024.0 * 1024 * 1024;
        break;
      case 'B':
        break;
      default:
        return {};
    }
    if (unit.front() != 'B') unit.remove_prefix(1);
  }
  if (unit != "" && unit != "B" && unit != "iB") return {};
  constexpr double kMost = 1e15;
  if (value * scale > kMost) return {};
  return static_cast<std::int64_t>(value * scale);
}

std::vector<std::int64_t> sweep_sizes(std::int64_t least, std::int64_t most, std::int64_t step_bytes, double factor) {
  TANDEM_REQUIRE(factor > 1 || step_bytes > 0, "a sweep needs a step");
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = least; size <= most && sizes.size() <= kMostSizes;) {
    sizes.push_back(size);
    const double next =
        factor > 1 ? std::floor(static_cast<double>(size) * factor) : static_cast<double>(size + step_bytes);
    if (next <= static_cast<double>(size) || next > static_cast<double>(most)) break;  // 0 times a factor is 0
    size = static_cast<std::int64_t>(next);
  }
  return sizes;
}

}  // namespace tandem
