#include "strategies/strategy/average_loss.h"

#include <fmt/format.h>

#include "engine/device.h"
#include "engine/op.h"
#include "strategies/base/errors.h"
#include "strategies/strategy/arithmetic.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/strategy.h"

namespace tandem {
namespace {

std::int64_t global_batch_of(const Tensor& losses) {
  if (has_strategy() && in_cross_replica_context()) {
    throw RuntimeError(
        "compute_average_loss() without a global batch size is called in a cross-replica context; call it in a replica "
        "context, inside run()");
  }
  return losses.shape()[0] * get_strategy().num_replicas_in_sync();
}

}  // namespace

Tensor compute_average_loss(const Value& per_example_loss, const std::optional<Value>& sample_weight,
                            std::optional<std::int64_t> global_batch_size) {
  Tensor losses = current_part(per_example_loss).tensor();
  if (losses.shape().rank() == 0) throw ValueError("per_example_loss is a scalar; it needs a rank of at least 1");
  if (global_batch_size && *global_batch_size < 1) {
    throw ValueError(fmt::format("a global batch size of {}; it must be positive", *global_batch_size));
  }
  const std::int64_t batch = global_batch_size ? *global_batch_size : global_batch_of(losses);
  if (sample_weight) losses = (Value(losses) * *sample_weight).tensor();
  Stream& stream = losses.device().compute_stream();
  Tensor loss = losses.device().allocate(losses.dtype(), {});
  if (batch == 0) {  // no replica has an example
    stream.launch(op::fill(loss, 0));
    return loss;
  }
  stream.launch(op::sum_axis(loss, losses.reshape({losses.element_count()}), 0));
  stream.launch(op::scale_add(loss, loss, 1 / static_cast<double>(batch), 0));
  return loss;
}

}  // namespace tandem
