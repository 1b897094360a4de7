// This machine's processor, as engines that run on it describe it.
#pragma once

#include "engine/engine.h"

namespace tandem::cpu {

// All sockets as one: its cores are those this process may use.
Hardware this_processor();

}  // namespace tandem::cpu
