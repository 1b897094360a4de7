// Which layers' tokens see a window of those before them only, by Megatron-LM's arguments.
#pragma once

#include <vector>

#include "scenarios/import/flags.h"
#include "scenarios/import/models/transformer.h"

namespace tandem {

// "--window-size 127,0": a token sees so many before it and itself, in all layers but every so many, or in those that
// a list names. Throws InputError for a window that is no number, and for a list of another number of layers.
void set_windows(const Flags& flags, std::vector<BlockSpec>& blocks);

}  // namespace tandem
