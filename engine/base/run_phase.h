// What a run does before its first step, which may take long on a large job: reported by engines and whoever prepares
// runs, for people who wait.
//
// Threads: set_phase_listener() before the first run; tell_phase() from any thread.
#pragma once

#include <functional>
#include <string_view>

namespace tandem {

struct RunPhase {
  std::string_view text;      // "divides the flows among links"
  bool starts_again = false;  // steps that were already reported are simulated once more
};

void set_phase_listener(std::function<void(const RunPhase&)> listener);  // empty: nobody listens
void tell_phase(const RunPhase& phase);

}  // namespace tandem
