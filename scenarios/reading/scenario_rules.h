// The rules that several values of a scenario must keep together. Values are checked one by one where they are read.
#pragma once

namespace tandem {

class Diagnostics;
struct Scenario;

// Reports the rules that the scenario breaks: of its numbers of devices, workers and steps, of its strategy and, if
// `problems` is empty by then, of how its strategy divides the model. Rules of a strategy that does not exist are left
// out. A problem is that of the value to which a setting gave it, where there is one.
void check_rules(const Scenario& scenario, Diagnostics& problems);

}  // namespace tandem
