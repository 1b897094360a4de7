// What is left of an exploration when one of its runs ends the program by a signal: a line on stderr that names the
// seed.
//
// Threads: one at a time; the signal may come to any.
#pragma once

#include <cstdint>

namespace tandem {

// Once, before the first note. A signal that already has a handler (a sanitizer's) keeps it.
void handle_crashes();

// From now on a crash is one of this seed's run.
void note_seed(std::uint64_t seed);

}  // namespace tandem
