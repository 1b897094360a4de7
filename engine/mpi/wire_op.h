// Ops as bytes. A host function cannot be sent.
#pragma once

#include <functional>

#include "engine/mpi/bytes.h"
#include "engine/op.h"

namespace tandem::mpi {

// `put_tensor` is called for each operand that is there, with the same writer.
void put_op(ByteWriter& bytes, Op& op, const std::function<void(const Tensor&)>& put_tensor);
// `get_tensor` reads what put_tensor has written.
Op get_op(ByteReader& bytes, const std::function<Tensor()>& get_tensor);

}  // namespace tandem::mpi
