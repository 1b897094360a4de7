// The identity of a launch: its kernel, every number it is given, and the addresses of its operands.
#pragma once

#include "engine/cuda/device/identity_hash.h"
#include "engine/op.h"

namespace tandem::cuda {

// Adds the addresses of a launch to `addresses` and everything else that identifies it to `shape`. Must not be called
// for host functions.
void add_identity(IdentityHash& shape, IdentityHash& addresses, const Op& op);

}  // namespace tandem::cuda
