// Means of integers, which are of type f64: TensorFlow's `sum / count` divides integers to f64.
#pragma once

#include "strategies/base/options.h"
#include "strategies/values/value.h"

namespace tandem {

bool is_whole(DType dtype);  // i32, i64 or u8

// Returns a copy of the elements in f64, made in the order of the device's compute stream. Integers beyond 2^53 are
// rounded.
Tensor as_f64(const Tensor& tensor);

// Returns the value with its integer tensors as f64 if `op` is MEAN, and otherwise the value itself. Takes tensors,
// IndexedSlices and distributed values of these; returns other values as they are.
Value as_mean_operand(ReduceOp op, const Value& value);

}  // namespace tandem
