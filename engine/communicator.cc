#include "engine/communicator.h"

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

}  // namespace tandem
