// tf.nn.compute_average_loss: the loss of one replica as its share of the average over the global batch.
#pragma once

#include <cstdint>
#include <optional>

#include "strategies/values/value.h"

namespace tandem {

// Returns the sum of the losses of this replica's examples, each times its weight, divided by the global batch size: a
// scalar tensor on the losses' device. The sum of these over the replicas is the average over the batch.
// `per_example_loss` is a tensor of rank 1 or more (ValueError); `sample_weight` is a number or a tensor of as many
// elements. The global batch size must be positive (ValueError). By default it is the number of losses along axis 0
// times the number of replicas in sync, which is a RuntimeError in a cross-replica context.
Tensor compute_average_loss(const Value& per_example_loss, const std::optional<Value>& sample_weight = std::nullopt,
                            std::optional<std::int64_t> global_batch_size = std::nullopt);

}  // namespace tandem
