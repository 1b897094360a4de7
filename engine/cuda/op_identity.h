// What makes two ops the same launch: which kernel, where its operands are, and every number it is given.
#pragma once

#include <string>

#include "engine/op.h"

namespace tandem::cuda {

// Appends bytes that are equal for equal launches alone. Not for host functions.
void append_identity(std::string& key, const Op& op);

}  // namespace tandem::cuda
