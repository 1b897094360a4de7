#include "strategies/parallel/tensor_shards.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"

namespace tandem {

LayerShard layer_shard(const LinearStack& stack, int layer, int parts, int part) {
  const LinearShape whole = stack.shape(layer);
  const Split split = (stack.layers() - 1 - layer) % 2 == 0 ? Split::rows : Split::columns;
  LayerShard shard{.layer = layer, .split = split, .inputs = {0, whole.inputs}, .outputs = {0, whole.outputs}};
  Range& divided = split == Split::rows ? shard.inputs : shard.outputs;
  if (divided.count < parts) {
    throw ValueError(fmt::format("layer {}: {} {} cannot be divided among {} tensor-parallel devices", layer,
                                 divided.count, split == Split::rows ? "inputs" : "outputs", parts));
  }
  divided = part_of(divided.count, parts, part);
  return shard;
}

LinearStack::Values initial_values(const LinearStack& stack, const LayerShard& shard) {
  const std::int64_t columns = stack.shape(shard.layer).outputs;
  return [columns, shard, whole = stack.initial_weights(shard.layer)](std::int64_t element) {
    const std::int64_t row = element / shard.outputs.count, column = element % shard.outputs.count;
    if (row >= shard.inputs.count) return 0.0;  // the bias
    return whole((shard.inputs.first + row) * columns + shard.outputs.first + column);
  };
}

}  // namespace tandem
