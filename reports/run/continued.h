// Continues the summary of a run beyond what was simulated.
//
// Threads: any.
#pragma once

#include "reports/run/report.h"

namespace tandem {

// Returns the summary of steps with `periods` more repetitions of a period than those of `simulated`. `shorter` is the
// summary of the same steps with one less (without_a_period()). Each repetition adds the difference of the two, to
// times, to counts, and to the sums from which means over calls are made. Medians of calls stay as they are.
Summary continued(const Summary& simulated, const Summary& shorter, int periods);

}  // namespace tandem
