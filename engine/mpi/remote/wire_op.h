// Converts ops to bytes and back. Host functions cannot be sent.
#pragma once

#include <functional>

#include "engine/base/bytes.h"
#include "engine/op.h"

namespace tandem::mpi {

// Writes an op. Calls `put_tensor`, which appends to the same writer, for each operand that is not empty.
void put_op(ByteWriter& bytes, Op& op, const std::function<void(const Tensor&)>& put_tensor);
// Reads an op. `get_tensor` reads what put_tensor has written.
Op get_op(ByteReader& bytes, const std::function<Tensor()>& get_tensor);

}  // namespace tandem::mpi
