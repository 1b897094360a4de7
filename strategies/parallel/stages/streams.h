// The streams of a device that parallel training uses in addition to those of engine/device.h.
//
// Transfers between pipeline stages have one stream per direction and neighbour, so that each waits only for its own
// neighbour.
#pragma once

#include "engine/device.h"

namespace tandem {

inline constexpr int kTensorStream = 3;           // sums over tensor-parallel devices
inline constexpr int kReceiveInputStream = 4;     // from the stage before
inline constexpr int kSendOutputStream = 5;       // to the stage after
inline constexpr int kReceiveGradientStream = 6;  // from the stage after
inline constexpr int kSendGradientStream = 7;     // to the stage before
inline constexpr int kContextStream = 8;          // keys and values, over the devices of a sequence
inline constexpr int kExpertStream = 9;           // tokens, over the devices that divide the experts

// Added to the four streams between stages, for the device's second stage where both directions of a pipeline meet on
// it.
inline constexpr int kSecondStageStreams = 6;
inline constexpr int kToHostStream = 14;    // what the host keeps, and gradients that it applies
inline constexpr int kFromHostStream = 15;  // what comes back

inline constexpr int kSendPieceStream = 16;  // keys and values that go round; they arrive by kContextStream

}  // namespace tandem
