// The identity of a launch: its kernel, the addresses of its operands, and every number it is given.
#pragma once

#include <string>

#include "engine/op.h"

namespace tandem::cuda {

// Appends bytes that are equal only for equal launches. Must not be called for host functions.
void append_identity(std::string& key, const Op& op);

}  // namespace tandem::cuda
