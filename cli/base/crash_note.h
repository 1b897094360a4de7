// Writes a line on stderr that names the seed when a run of an exploration ends the program by a signal.
//
// Threads: call these from one thread; the signal may arrive on any.
#pragma once

#include <cstdint>

namespace tandem {

// Installs the signal handlers; call it once, before the first note. Handlers that exist (a sanitizer's) stay.
void handle_crashes();

// Names the seed whose run begins.
void note_seed(std::uint64_t seed);

}  // namespace tandem
