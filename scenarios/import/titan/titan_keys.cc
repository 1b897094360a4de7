#include "scenarios/import/titan/titan_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem {
namespace {

// Where a key matters.
enum class Where : std::uint8_t { everywhere, tensor, pipeline, context, fp8, mxfp8, compiled, usual_moments };

// A key that is named where its value is not the one that a scenario has. Facts from pytorch/torchtitan,
// torchtitan/config/job_config.py and configs.py, and torchtitan/distributed/.
struct Unmodelled {
  std::string_view key, modelled, why;
  Where where = Where::everywhere;
};
constexpr std::string_view kOff = "false";
constexpr std::array kUnmodelled = {
    Unmodelled{"training.enable_cpu_offload", kOff, "the optimizer works on the device"},
    Unmodelled{"training.deterministic", kOff, "slower kernels that give equal results"},
    Unmodelled{"debug.deterministic", kOff, "slower kernels that give equal results"},
    Unmodelled{"debug.detect_anomaly", kOff, "its checks take no time"},
    Unmodelled{"debug.batch_invariant", kOff, "slower kernels that give equal results"},
    Unmodelled{"optimizer.early_step_in_backward", kOff, "the optimizer follows the backward pass"},
    Unmodelled{"optimizer.implementation", "fused", "the optimizer takes the time of fused kernels",
               Where::usual_moments},
    Unmodelled{"experimental.custom_import", "", "what it changes is left out"},
    Unmodelled{"experimental.custom_args_module", "", "what it changes is left out"},
    Unmodelled{"fault_tolerance.enable", kOff, "replicas are not those of torchft, which may leave and return"},
    Unmodelled{"parallelism.enable_compiled_autograd", kOff, "the backward pass is compiled as without it"},
    Unmodelled{"parallelism.enable_fsdp_symm_mem", kOff, "parameters are gathered by NCCL"},
    Unmodelled{"parallelism.pipeline_parallel_schedule_csv", "", "the schedule is that of its key", Where::pipeline},
    Unmodelled{"parallelism.pipeline_parallel_split_points", "", "the layers are divided as without it",
               Where::pipeline},
    Unmodelled{"parallelism.module_fqns_per_model_part", "", "the layers are divided as without it", Where::pipeline},
    Unmodelled{"parallelism.pipeline_parallel_expert_parallel_overlap", "true",
               "passes of DualPipeV hide exchanges with experts", Where::pipeline},
    // Without it, each device gathers the logits of all others and computes the whole loss.
    Unmodelled{"parallelism.disable_loss_parallel", kOff,
               "each device computes the loss of its part of the vocabulary, and no logits are gathered",
               Where::tensor},
    Unmodelled{"parallelism.context_parallel_load_balancer", "headtail",
               "all devices have equally many pairs of a query and a key", Where::context},
    Unmodelled{"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", "moe.router.gate",
               "which products are kept does not depend on their shapes"},
    Unmodelled{"activation_checkpoint.early_stop", kOff, "all of a block's forward pass is computed again"},
    Unmodelled{"compile.backend", "inductor", "kernels are fused as by inductor", Where::compiled},
    Unmodelled{"float8.filter_fqns", "output", "all dense layers of blocks are quantised, and no others", Where::fp8},
    Unmodelled{"float8.moe_fqns_prototype", "", "experts are quantised as other dense layers", Where::fp8},
    Unmodelled{"float8.precompute_float8_dynamic_scale_for_fsdp", kOff, "each layer's scales are found for themselves",
               Where::fp8},
    Unmodelled{"float8.force_recompute_fp8_weight_in_bwd", kOff, "weights are quantised once a step", Where::fp8},
    Unmodelled{"float8.emulate", kOff, "products run in fp8", Where::fp8},
    Unmodelled{"mx.filter_fqns", "output", "all dense layers of blocks are quantised, and no others", Where::mxfp8},
    Unmodelled{"mx.recipe_name", "mxfp8", "numbers have eight bits, with a scale for 32 of them", Where::mxfp8},
};

// Keys that change nothing of a step's time, and those that only some jobs read: names or, with * at the end, their
// beginnings.
constexpr auto kSilent = std::to_array<std::string_view>({
    "activation_checkpoint.debug",
    "activation_checkpoint.determinism_check",
    "activation_checkpoint.memory_budget",
    "activation_checkpoint.preserve_rng_state",
    "activation_checkpoint.selective_ac_option",
    "activation_checkpoint.visualize_memory_budget_pareto",
    "checkpoint.*",
    "comm.*",
    "debug.deterministic_warn_only",
    "debug.moe_force_load_balance",
    "debug.print_config",
    "debug.save_config_file",
    "debug.seed",
    "fault_tolerance.*",
    "float8.enable_fsdp_float8_all_gather",
    "float8.model_compile_enabled",
    "float8.recipe_name",
    "job.*",
    "lr_scheduler.*",
    "memory_estimation.*",
    "metrics.*",
    "model.flavor",
    "model.hf_assets_path",
    "model.print_after_conversion",
    "model.tokenizer_*",
    "mx.mxfp8_dim1_cast_kernel_choice",
    "mx.use_fp8_dim1_cast_triton_kernel",
    "optimizer.beta1",
    "optimizer.beta2",
    "optimizer.eps",
    "optimizer.lr",
    "optimizer.weight_decay",
    "profiling.*",
    "training.dataset",
    "training.dataset_path",
    "training.gc_debug",
    "training.gc_freq",
    "training.seed",
    "training.steps",
    "training.warmup_steps",
    "validation.*",
});

// Later versions have the sections of quantisation inside another one.
constexpr std::string_view kQuantised = "quantize.linear.";

bool is_silent(std::string_view key) {
  if (key.starts_with(kQuantised)) key.remove_prefix(kQuantised.size());
  return std::ranges::any_of(kSilent, [&](std::string_view pattern) {
    return pattern.ends_with('*') ? key.starts_with(pattern.substr(0, pattern.size() - 1)) : key == pattern;
  });
}

bool matters(Where where, const TitanJob& job) {
  switch (where) {
    case Where::everywhere:
      return true;
    case Where::tensor:
      return job.tensor > 1;
    case Where::pipeline:
      return job.pipeline > 1;
    case Where::context:
      return job.context > 1;
    case Where::fp8:
      return job.precision == "fp8";
    case Where::mxfp8:
      return job.precision == "mxfp8";
    case Where::compiled:
      return job.compiles;
    case Where::usual_moments:
      return !job.keeps_bf16_moments;
  }
  return true;
}

// A switch that is on needs no value.
std::string sentence(const Unmodelled& one, const std::string& key, const std::string& value) {
  const bool is_switch = value == "true";
  return is_switch ? fmt::format("{}: {}", key, one.why) : fmt::format("{} {}: {}", key, value, one.why);
}

}  // namespace

std::vector<std::string> unmodelled_keys(const TitanValues& values, const TitanJob& job) {
  std::vector<std::string> all;
  for (const Unmodelled& one : kUnmodelled) {
    for (const std::string& key : {std::string(one.key), std::string(kQuantised) + std::string(one.key)}) {
      if (one.modelled == kOff || one.modelled == "true") values.is_on(key);  // refuses texts
      const auto value = values.shown(key);
      if (value && !value->empty() && *value != one.modelled && matters(one.where, job)) {
        all.push_back(sentence(one, key, *value));
      }
    }
  }
  for (const auto& [key, place] : values.places()) {
    if (values.is_read(key) || is_silent(key)) continue;
    all.push_back(fmt::format("{}: not known here; what it changes is left out", key));
  }
  return all;
}

}  // namespace tandem
