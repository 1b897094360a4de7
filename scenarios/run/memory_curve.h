// The memory of a step, at the times of a simulated run.
#pragma once

#include <optional>

#include "engine/timeline.h"
#include "reports/run/memory_curve.h"
#include "scenarios/job/job.h"

namespace tandem {

// Returns the curve of the device that needs most, over the last step. Returns nothing for jobs of which no need is
// known, and where the records do not have the work of the layers.
std::optional<MemoryCurve> memory_curve(const Job& job, const Timeline& timeline);

}  // namespace tandem
