// Slows the devices of the cpu engine down on purpose, so that a gate on times can show that it finds such a change.
#pragma once

namespace tandem::cpu {

// Returns the share by which ops and copies take longer than they need, such as 0.05: TANDEM_SLOW_DOWN in the
// environment, or 0 if it is not set. Throws Error for a value that is no number from 0 to 10.
double slow_down();

}  // namespace tandem::cpu
