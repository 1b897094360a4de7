// What Megatron-LM refuses: validate_args() of megatron/training/arguments.py (commit 000c4ac2),
// megatron/core/transformer/transformer_config.py and megatron/core/optimizer/optimizer_config.py.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/export/job_writer.h"

namespace tandem {
namespace {

void check_layout(const JobToWrite& job) {
  const ParallelOptions& layout = job.layout;
  const LayersSettings& layers = job.layers;
  const bool has_routed = std::ranges::any_of(
      job.model.blocks, [](const Blocks& blocks) { return blocks.block.feed_forward.experts.has_value(); });
  if (has_routed && layout.tensor > 1 && !layers.sequence_parallel)
    job.refuse("workload.sequence_parallel",
               "Megatron-LM trains experts with tensor parallelism only where it is true");
  if (layers.overlap_products && layout.tensor > 1 && !layers.sequence_parallel)
    job.refuse("workload.overlap_products", "Megatron-LM's --tp-comm-overlap needs sequence_parallel: true");
  if (layout.distributed_optimizer && !layout.shard_parameters && layout.overlap_gather && !layers.overlap)
    job.refuse("strategy.overlap_gather", "Megatron-LM's --overlap-param-gather needs workload.overlap: true");
  if (layout.context > 1 && job.model.tokens % (2 * layout.context) != 0)
    job.refuse("strategy.context",
               fmt::format("Megatron-LM divides sequences into twice as many parts: {} tokens are no multiple of {}",
                           job.model.tokens, 2 * layout.context));
  if (layout.expert > 1 && layers.dtype == DType::f16)
    job.refuse("workload.dtype", "Megatron-LM divides no experts with f16; bf16 it does");
  if (layout.batch % (layout.data * layout.micro_batches) != 0)
    job.refuse("workload.batch",
               fmt::format("Megatron-LM's micro-batches are equal: {} replicas x {} micro-batches do not divide {}",
                           layout.data, layout.micro_batches, layout.batch));
  if (layout.axis_order == AxisOrder::tensor_pipeline_data && layout.pipeline > 1 &&
      layout.devices_with_experts() / layout.expert != layout.data)
    job.refuse("strategy.axis_order",
               "Megatron-LM's --use-tp-pp-dp-mapping needs as many replicas of experts as along data");
  if (layout.order != PipelineOrder::one_forward_one_backward)
    job.refuse("strategy.schedule", fmt::format("Megatron-LM has no {}; its schedule is {}", name_of(layout.order),
                                                name_of(PipelineOrder::one_forward_one_backward)));
}

void check_memory_savers(const JobToWrite& job) {
  const ParallelOptions& layout = job.layout;
  const LayersSettings& layers = job.layers;
  const bool has_types = layers.moments.first || layers.moments.second;
  if ((has_types || layers.offload.optimizer > 0) && !layout.distributed_optimizer && !layout.shard_parameters)
    job.refuse(has_types ? "workload.precision.moments" : "workload.offload.optimizer",
               "Megatron-LM's --use-precision-aware-optimizer needs strategy.distributed_optimizer: true");
  if (layers.offload.blocks == 0) return;
  const char* const key = "workload.offload.activations";
  if (layout.pipeline > 1) job.refuse(key, "Megatron-LM's --cpu-offloading needs a pipeline of one stage");
  if (layers.recomputed.any)
    job.refuse(key, "Megatron-LM's --cpu-offloading needs workload.activation_checkpointing: false");
  if (const auto blocks = std::ssize(job.model.blocks); layers.offload.blocks >= blocks)
    job.refuse(key, fmt::format("Megatron-LM's --cpu-offloading leaves at least one of the {} blocks", blocks));
}

}  // namespace

void check_limits_of_megatron(const JobToWrite& job) {
  if (!job.model.is_causal) job.refuse("workload.model", "is no decoder; pretrain_gpt.py trains decoders");
  check_layout(job);
  check_memory_savers(job);
}

}  // namespace tandem
