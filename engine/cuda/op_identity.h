// The identity of a launch: its kernel, every number it is given, and the addresses of its operands.
#pragma once

#include <string>

#include "engine/op.h"

namespace tandem::cuda {

// Appends bytes to `shape` that are equal only for launches that are equal but for addresses, and to `addresses` those
// that are equal only for equal addresses. Must not be called for host functions.
void append_identity(std::string& shape, std::string& addresses, const Op& op);

}  // namespace tandem::cuda
