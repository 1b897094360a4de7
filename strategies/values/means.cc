#include "strategies/values/means.h"

#include <utility>

#include "engine/device.h"
#include "engine/op.h"

namespace tandem {

bool is_whole(DType dtype) {
  return dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8;
}

Tensor as_f64(const Tensor& tensor) {
  Tensor cast = tensor.device().allocate(DType::f64, tensor.shape());
  tensor.device().compute_stream().launch(op::cast(cast, tensor));
  return cast;
}

Value as_mean_operand(ReduceOp op, const Value& value) {
  if (op != ReduceOp::mean) return value;
  if (value.is(ValueKind::tensor)) return is_whole(value.tensor().dtype()) ? Value(as_f64(value.tensor())) : value;
  if (value.is(ValueKind::sparse)) {
    IndexedSlices slices = value.slices();
    if (is_whole(slices.values.dtype())) slices.values = as_f64(slices.values);
    return slices;
  }
  if (!value.is_distributed()) return value;
  Value::Parts parts;
  for (const Value& part : value.parts()) parts.push_back(as_mean_operand(op, part));
  return value.is(ValueKind::mirrored) ? Value::mirrored(std::move(parts), value.places())
                                       : Value::per_replica(std::move(parts), value.places());
}

}  // namespace tandem
