// What is timed of one collective, as nccl-tests does: a range of sizes, and how many calls of each.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/collective.h"

namespace tandem {

struct CollectiveSweep {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
  int root = 0;
  // Sizes as nccl-tests defines them: the larger of a rank's input and output. Each is rounded down to whole elements,
  // and for collectives whose ranks hold parts to whole elements of each part. Sizes that are rounded down to 0 are not
  // timed.
  std::vector<std::int64_t> sizes{};
  int warmup = 5;
  int iterations = 20;
  bool checks_values = true;  // before the timed calls, where the engine carries values
};

}  // namespace tandem
