// Reads the arguments of Megatron-LM, and of NeMo's tests in their form: docs/import.md lists the flags.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/import/flags.h"
#include "scenarios/import/megatron_experts.h"
#include "scenarios/import/megatron_offload.h"
#include "scenarios/import/models/transformer.h"
#include "strategies/parallel/layout/parallel_options.h"

namespace tandem {

struct MegatronJob {
  TransformerSpec spec;
  std::int64_t tensor = 1, pipeline = 1, virtual_stages = 1, context = 1, expert = 1;
  ContextExchange context_exchange = ContextExchange::ring;
  AxisOrder axis_order = AxisOrder::tensor_data_pipeline;
  std::int64_t expert_tensor = 0;            // devices that divide each expert; 0: tensor
  std::vector<std::int64_t> stage_blocks{};  // of each stage; empty: equally many
  std::int64_t micro_batch = 1;
  std::optional<std::int64_t> global_batch{};
  std::optional<std::int64_t> nodes{}, devices{};  // of a node
  std::optional<std::int64_t> world{};             // devices of the job
  std::string dtype, optimizer;
  bool overlap = false;
  std::string recompute{};  // the value of activation_checkpointing, as YAML; empty: none
  MegatronOffload offload{};
  bool sequence_parallel = false;
  bool scatter_gather = true;
  bool distributed_optimizer = false, overlap_gather = false;
  bool shard_parameters = false, overlaps_experts = false;
  std::int64_t replicate = 1;
  bool keeps_scores = false;
  std::string precision{};  // "fp8", "mxfp8", "nvfp4"; empty: none
  std::string recipe{};     // of fp8
  bool gathers_quantised = false;
  std::string moments{};  // the value of precision.moments, as YAML; empty: the usual one
  bool overlaps_products = false;
  bool fuses_loss = false;
  bool fuses_softmax = true;     // of scores that are kept
  bool adds_in_products = true;  // gradients of later micro-batches
  bool reduces_in_f32 = true;    // gradients
  MegatronExperts experts{};
  std::string lora{};  // the value of workload.lora, as YAML; empty: all parameters learn
  std::int64_t bucket_bytes = 0;
  std::map<std::string, std::string> nccl{};
  std::vector<std::string> assumed{};
  std::vector<std::string> left_out{};
};

// Reads the flags. Throws InputError for what is missing or wrong, and for unknown kinds of models.
MegatronJob read_megatron(const Flags& flags);

}  // namespace tandem
