// Which streams of a device the ways of parallelism use, beside the ones that engine/device.h names.
//
// Transfers between pipeline stages have a stream for each direction: each then waits for its own neighbour only, and
// the order of one cannot hold up another.
#pragma once

#include "engine/device.h"

namespace tandem {

inline constexpr int kTensorStream = 3;           // sums over tensor-parallel devices
inline constexpr int kReceiveInputStream = 4;     // from the stage before
inline constexpr int kSendOutputStream = 5;       // to the stage after
inline constexpr int kReceiveGradientStream = 6;  // from the stage after
inline constexpr int kSendGradientStream = 7;     // to the stage before

}  // namespace tandem
