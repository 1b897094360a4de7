#include "engine/communicator.h"

#include <fmt/format.h>

namespace tandem {

double bus_bandwidth_factor(std::string_view operation, int ranks) {
  TANDEM_CHECK(ranks >= 1, "a collective without ranks");
  const double n = ranks;
  if (operation == "all_reduce") return 2 * (n - 1) / n;
  if (operation == "all_gather" || operation == "reduce_scatter") return (n - 1) / n;
  TANDEM_CHECK(operation == "broadcast" || operation == "reduce" || operation == "send" || operation == "receive",
               "no operation of a communicator is called '" + std::string(operation) + "'");
  return 1;
}

DeadlineExceededError deadline_exceeded(std::string_view call, const std::vector<DeviceId>& group,
                                        const DeviceId& waiting, double limit_s) {
  constexpr std::size_t kNamedAtMost = 8;
  std::string devices;
  for (std::size_t i = 0; i < group.size() && i < kNamedAtMost; ++i) devices += (i > 0 ? ", " : "") + group[i].text();
  if (group.size() > kNamedAtMost) devices += fmt::format(" and {} more", group.size() - kNamedAtMost);
  return DeadlineExceededError(
      fmt::format("{} is not complete {} s after {} was ready for it, its time limit (group: {})", call, limit_s,
                  waiting.text(), devices));
}

}  // namespace tandem
