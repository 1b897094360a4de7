// How threads that compute share cores: the rules that the cpu engine follows (engine/threads/cores.h) and the sim
// engine repeats (engine/sim/cores.h).
#pragma once

#include <chrono>
#include <cstdint>

namespace tandem {

// A thread that waits keeps its core for as long, unless others are in line. About as long as sleeping and waking
// takes: longer spinning would cost more than it can save.
inline constexpr std::chrono::microseconds kCoreSpin{20};
inline constexpr std::chrono::microseconds kCoreTurn{1000};    // of a stream while other streams wait for a core
inline constexpr std::chrono::milliseconds kCorePatience{20};  // of a thread in line, before it shares a core
inline constexpr std::chrono::milliseconds kCoreTick = kCorePatience / 4;  // between two looks for those that lost it

// What a thread takes of a collective in shared memory at a time: long enough to stream from memory and to hide the
// cost of taking it.
inline constexpr std::int64_t kCollectiveBlockBytes = 128 << 10;

}  // namespace tandem
