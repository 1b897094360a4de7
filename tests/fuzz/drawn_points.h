// Points of spaces that `tandem plan` may search, drawn at random: small models on small clusters, so that very many of
// them can be looked at, with every setting that decides what a pass or a step takes.
//
// Each choice begins with the simplest one, as Draws wants it.
#pragma once

#include <string>

#include "tests/fuzz/draws.h"

namespace tandem::fuzz {

// Returns the text of a scenario. Some are refused: settings exclude one another.
std::string drawn_point(Draws& draw);

}  // namespace tandem::fuzz
