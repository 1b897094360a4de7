// The evaluations of a run for people.
#pragma once

#include <string>

#include "reports/run/evaluations.h"

namespace tandem {

// "median of 3, every 100 steps: 5 x 1,024 examples on all devices; training waited 3.1 ms, 2.4 % of the job"
std::string evaluations_sentence(const Evaluations& evaluations);
// "loss 1.21 -> 0.44, accuracy 81.2 % -> 93.1 %", from the first one to the last; "" without values.
std::string evaluated_values_text(const Evaluations& evaluations);
// The lines of a report, the last one ended.
std::string evaluations_text(const Evaluations& evaluations);

}  // namespace tandem
