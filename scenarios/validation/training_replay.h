// What replaying tables of training runs gives.
#pragma once

#include <vector>

#include "reports/validation/validation.h"

namespace tandem::validation {

struct TrainingReplay {
  std::vector<TrainingPoint> points;
  std::vector<LeftOut> left_out;
};

}  // namespace tandem::validation
