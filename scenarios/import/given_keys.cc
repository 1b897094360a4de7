#include "scenarios/import/given_keys.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "topologies/base/error.h"

namespace tandem {
namespace {

struct OptionOfPart {
  std::string_view part, option;
  bool (*is_given)(const ImportChoices& options);
};

constexpr auto kOfOptions = std::to_array<OptionOfPart>({
    {"workload.sizes", "--sequence-length", [](const ImportChoices& one) { return one.tokens > 0; }},
    {"workload.batch", "--batch", [](const ImportChoices& one) { return one.batch > 0; }},
    {"workload.dtype", "--dtype", [](const ImportChoices& one) { return !one.dtype.empty(); }},
    {"workload.precision", "--precision", [](const ImportChoices& one) { return !one.precision.empty(); }},
    {"workload.optimizer", "--optimizer", [](const ImportChoices& one) { return !one.optimizer.empty(); }},
    {"workload.activation_checkpointing", "--recompute", [](const ImportChoices& one) { return one.recompute; }},
    {"workload.experts", "--dispatch", [](const ImportChoices& one) { return !one.dispatch.empty(); }},
    {"workload.sequence_parallel", "--tensor", [](const ImportChoices& one) { return one.tensor > 0; }},
    {"strategy.name", "--strategy", [](const ImportChoices& one) { return !one.strategy.empty(); }},
    {"strategy.tensor", "--tensor", [](const ImportChoices& one) { return one.tensor > 0; }},
    {"strategy.pipeline", "--pipeline", [](const ImportChoices& one) { return one.pipeline > 0; }},
    {"strategy.context", "--context", [](const ImportChoices& one) { return one.context > 0; }},
    {"strategy.expert", "--expert", [](const ImportChoices& one) { return one.expert > 0; }},
    {"strategy.virtual_stages", "--virtual-stages", [](const ImportChoices& one) { return one.virtual_stages > 0; }},
    {"strategy.micro_batches", "--batch", [](const ImportChoices& one) { return one.batch > 0; }},
    {"topology", "--topology", [](const ImportChoices& one) { return !one.topology.empty(); }},
    {"topology.cluster.gpu", "--gpu", [](const ImportChoices& one) { return !one.gpu.empty(); }},
    {"topology.cluster.workers", "--workers", [](const ImportChoices& one) { return one.workers > 0; }},
    {"devices", "--devices", [](const ImportChoices& one) { return one.devices > 0; }},
});

// The flags of Megatron-LM, or the keys of torchtitan, of a part. The first one that is given counts, else the first.
struct NamesOfPart {
  std::string_view part;
  std::vector<std::string> names;
};

const std::vector<NamesOfPart>& names_of_flags() {
  static const std::vector<NamesOfPart> kNames{
      {"workload.model", {"num_layers"}},
      {"workload.sizes", {"seq_length", "encoder_seq_length"}},
      {"workload.batch", {"global_batch_size"}},
      {"workload.dtype", {"bf16", "fp16"}},
      {"workload.parameter_dtype", {"grad_reduce_in_bf16"}},
      {"workload.precision", {"fp8_format", "fp8", "fp4_format", "fp4"}},
      {"workload.precision.recipe", {"fp8_recipe"}},
      {"workload.precision.gather", {"fp8_param_gather"}},
      {"workload.precision.moments", {"exp_avg_dtype", "exp_avg_sq_dtype"}},
      {"workload.optimizer", {"optimizer"}},
      {"workload.bucket_bytes", {"ddp_bucket_size"}},
      {"workload.stack.attention", {"attention_backend", "use_flash_attn"}},
      {"workload.experts.dispatch", {"moe_flex_dispatcher_backend", "moe_token_dispatcher_type"}},
      {"workload.experts.capacity", {"moe_expert_capacity_factor"}},
      {"workload.experts.groups.of", {"moe_router_num_groups"}},
      {"workload.experts.groups.used", {"moe_router_group_topk"}},
      {"workload.lora", {"peft_target_modules"}},
      {"workload.lora.rank", {"peft_dim"}},
      {"workload.sequence_parallel", {"sequence_parallel"}},
      {"workload.overlap_products", {"tp_comm_overlap"}},
      {"workload.activation_checkpointing",
       {"recompute_modules", "recompute_granularity", "recompute_activations", "moe_layer_recompute"}},
      {"workload.offload.activations", {"cpu_offloading_num_layers"}},
      {"workload.offload.optimizer", {"optimizer_offload_fraction", "optimizer_cpu_offload"}},
      {"strategy.tensor", {"tensor_model_parallel_size"}},
      {"strategy.pipeline", {"pipeline_model_parallel_size"}},
      {"strategy.micro_batches", {"global_batch_size"}},
      {"strategy.virtual_stages",
       {"num_virtual_stages_per_pipeline_rank", "num_layers_per_virtual_pipeline_stage",
        "virtual_pipeline_model_parallel_size", "pipeline_model_parallel_layout"}},
      {"strategy.stage_blocks",
       {"pipeline_model_parallel_layout", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers",
        "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage",
        "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split", "mtp_num_layers"}},
      {"strategy.context", {"context_parallel_size"}},
      {"strategy.context_exchange", {"cp_comm_type", "context_parallel_size"}},
      {"strategy.axis_order", {"use_tp_pp_dp_mapping"}},
      {"strategy.expert", {"expert_model_parallel_size"}},
      {"strategy.expert_tensor", {"expert_tensor_parallel_size"}},
      {"strategy.distributed_optimizer", {"use_distributed_optimizer", "data_parallel_sharding_strategy"}},
      {"strategy.overlap_gather", {"overlap_param_gather"}},
      {"strategy.overlap_experts", {"overlap_moe_expert_parallel_comm"}},
      {"strategy.overlap_shared_expert", {"moe_shared_expert_overlap"}},
      {"strategy.shard_parameters", {"data_parallel_sharding_strategy"}},
      {"strategy.replicate", {"num_distributed_optimizer_instances"}},
      {"topology.cluster.workers", {"nnodes", "num_nodes", "world_size"}},
      {"devices", {"nproc_per_node", "devices"}}};
  return kNames;
}

const std::vector<NamesOfPart>& names_of_job() {
  static const std::vector<NamesOfPart> kNames{
      {"workload.model", {"model.flavor"}},
      {"workload.sizes", {"training.seq_len"}},
      {"workload.batch", {"training.global_batch_size", "training.local_batch_size", "training.batch_size"}},
      {"workload.gradient_accumulation_steps", {"training.global_batch_size"}},
      {"workload.dtype", {"training.mixed_precision_param"}},
      {"workload.parameter_dtype", {"training.dtype"}},
      {"workload.precision", {"model.converters"}},
      {"workload.precision.moments", {"optimizer.implementation"}},
      {"workload.sequence_parallel", {"parallelism.tensor_parallel_degree"}},
      {"workload.overlap_products",
       {"parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"}},
      {"workload.activation_checkpointing", {"activation_checkpoint.mode"}},
      {"strategy.data", {"parallelism.data_parallel_shard_degree", "parallelism.data_parallel_replicate_degree"}},
      {"strategy.shard_parameters", {"parallelism.data_parallel_shard_degree"}},
      {"strategy.distributed_optimizer", {"parallelism.fsdp_reshard_after_forward"}},
      {"strategy.replicate", {"parallelism.data_parallel_replicate_degree"}},
      {"strategy.tensor", {"parallelism.tensor_parallel_degree"}},
      {"strategy.pipeline", {"parallelism.pipeline_parallel_degree"}},
      {"strategy.context", {"parallelism.context_parallel_degree"}},
      {"strategy.context_exchange",
       {"parallelism.context_parallel_rotate_method", "parallelism.context_parallel_degree"}},
      {"strategy.expert", {"parallelism.expert_parallel_degree"}},
      {"strategy.expert_tensor", {"parallelism.expert_tensor_parallel_degree", "parallelism.expert_parallel_degree"}},
      {"strategy.schedule", {"parallelism.pipeline_parallel_schedule"}},
      {"strategy.micro_batches",
       {"parallelism.pipeline_parallel_microbatch_size", "training.global_batch_size", "training.local_batch_size",
        "training.batch_size", "parallelism.pipeline_parallel_schedule"}},
      {"strategy.virtual_stages",
       {"parallelism.pipeline_parallel_layers_per_stage", "parallelism.pipeline_parallel_schedule"}},
      {"strategy.stage_blocks",
       {"parallelism.pipeline_parallel_layers_per_stage", "parallelism.pipeline_parallel_first_stage_less_layers",
        "parallelism.pipeline_parallel_last_stage_less_layers", "parallelism.pipeline_parallel_degree"}}};
  return kNames;
}

std::vector<Origin> of_given_options(const std::string& file, const ImportChoices& options) {
  std::vector<Origin> origins;
  for (const OptionOfPart& one : kOfOptions) {
    if (one.is_given(options)) {
      origins.push_back({std::string(one.part), problem_at(file, kBeginning, "", std::string(one.option))});
    }
  }
  return origins;
}

}  // namespace

std::vector<Origin> origins_of_options(const std::string& file, const ImportChoices& options) {
  std::vector<Origin> origins = of_given_options(file, options);
  // What usual values decide that others could replace.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kUsual{{{"devices", "--devices"},
                                                                                 {"strategy.tensor", "--devices"},
                                                                                 {"strategy.pipeline", "--devices"},
                                                                                 {"workload.batch", "--batch"},
                                                                                 {"strategy.micro_batches", "--batch"},
                                                                                 {"topology", "--topology"}}};
  for (const auto& [part, option] : kUsual) {
    origins.push_back({std::string(part), problem_at(file, kBeginning, "", std::string(option))});
  }
  return origins;
}

std::vector<Origin> origins_of_flags(const Flags& flags, const ImportChoices& options) {
  std::vector<Origin> origins = of_given_options(flags.file(), options);
  for (const auto& [part, names] : names_of_flags()) {
    const auto given =
        std::ranges::find_if(names, [&](const std::string& name) { return flags.find(name) != nullptr; });
    origins.push_back({std::string(part), flags.place_of(given == names.end() ? names.front() : *given)});
  }
  return origins;
}

std::vector<Origin> origins_of_job(const TitanJob& job, const ImportChoices& options) {
  std::vector<Origin> origins = of_given_options(job.file, options);
  for (const auto& [part, names] : names_of_job()) {
    const auto given = std::ranges::find_if(names, [&](const std::string& name) { return job.places.contains(name); });
    origins.push_back({std::string(part), job.place_of(given == names.end() ? names.front() : *given)});
  }
  return origins;
}

std::string_view key_of_part(MeshPart part) {
  switch (part) {
    case MeshPart::tensor:
      return "strategy.tensor";
    case MeshPart::pipeline:
      return "strategy.pipeline";
    case MeshPart::context:
      return "strategy.context";
    case MeshPart::experts:
      return "strategy.expert";
    case MeshPart::batch:
      break;
  }
  return "workload.batch";
}

void refuse_size(const std::vector<Origin>& origins, const ImportChoices& options, std::string_view key,
                 const std::string& message) {
  const bool is_axis = key.starts_with("strategy.") && key != "strategy.expert";
  if (is_axis && options.workers > 0) key = "topology.cluster.workers";
  if (is_axis && options.workers == 0 && options.devices > 0) key = "devices";
  const auto origin = std::ranges::find(origins, key, &Origin::key);
  TANDEM_CHECK(origin != origins.end(), "a size that nothing gives");
  Diagnostic problem = origin->given;
  problem.message = message;
  throw InputError({problem});
}

}  // namespace tandem
