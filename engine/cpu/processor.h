// Describes this machine's processor.
#pragma once

#include "engine/engine.h"

namespace tandem::cpu {

// Describes all sockets as one; the cores are those this process may use.
Hardware this_processor();

}  // namespace tandem::cpu
