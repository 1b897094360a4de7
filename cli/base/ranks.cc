#include "cli/base/ranks.h"

#include <CLI/CLI.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "topologies/base/error.h"
#include "topologies/base/units.h"

namespace tandem {

void add_wait_option(CLI::App& command, double& wait_s) {
  command.add_option("--wait", wait_s, "Seconds that the first of several ranks waits while no other one reports")
      ->check(number_within(0, limits_of(Dimension::seconds).most));
}

int on_this_rank(const std::function<int(const Rank& rank)>& part) {
  const Rank rank = rank_of_process();
  try {
    return part(rank);
  } catch (const InputError&) {
    if (rank.on_host == 0) throw;
    return kOk;
  }
}

}  // namespace tandem
