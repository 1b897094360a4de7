#include "engine/cpu/slow_down.h"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "topologies/base/error.h"

namespace tandem::cpu {
namespace {

double read_slow_down() {
  constexpr double kMost = 10;
  const char* variable = std::getenv("TANDEM_SLOW_DOWN");
  const std::string_view text = variable == nullptr ? "" : variable;
  if (text.empty()) return 0;
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  const bool is_share = error == std::errc{} && end == text.data() + text.size() && share >= 0 && share <= kMost;
  if (!is_share) {
    throw Error("TANDEM_SLOW_DOWN must be a share from 0 to 10, such as 0.05, found '" + std::string(text) + "'");
  }
  return share;
}

}  // namespace

double slow_down() {
  static const double share = read_slow_down();
  return share;
}

}  // namespace tandem::cpu
