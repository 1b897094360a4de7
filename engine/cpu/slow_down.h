// Slows the devices of the cpu engine down on purpose, so that a gate on times can show that it finds such a change.
#pragma once

namespace tandem::cpu {

// The share by which ops and copies take longer than they need: that of TANDEM_SLOW_DOWN in the environment, such as
// 0.05; 0 without it. Throws Error for a value that is no share from 0 to 10.
double slow_down();

}  // namespace tandem::cpu
