// Configurations that Megatron-Bridge keeps beside checkpoints.
#include "tests/scenarios/import/megatron_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

class BridgeConfig : public MegatronFiles {
 protected:
  static std::string config(const std::string& of_model, const std::string& others = "") {
    return "_target_: megatron.bridge.training.config.ConfigContainer\n"
           "model:\n"
           "  _target_: megatron.bridge.models.gpt_provider.GPTModelProvider\n"
           "  activation_func:\n    _call_: false\n    _target_: torch.nn.functional.silu\n"
           "  add_bias_linear: false\n  gated_linear_unit: true\n  normalization: RMSNorm\n"
           "  hidden_size: 32\n  ffn_hidden_size: 48\n  num_attention_heads: 4\n  num_query_groups: 2\n"
           "  num_layers: 4\n  seq_length: 16\n  vocab_size: 100\n  should_pad_vocab: false\n"
           "  position_embedding_type: rope\n  share_embeddings_and_output_weights: false\n"
           "  recompute_num_layers: null\n  tensor_model_parallel_size: 1\n  bf16: true\n" +
           of_model +
           "train:\n  global_batch_size: 64\n  micro_batch_size: 2\n  train_iters: 10\n"
           "optimizer:\n  lr: 0.0003\n  optimizer: adam\n" +
           others;
  }
  MegatronJob job_of(const std::string& text) const { return job(text, kFile); }
  Scenario scenario_of(const std::string& text) const { return scenario(text, {}, kFile); }
  Imported import_of(const std::string& text) const { return import_file(InputFile(write(kFile, text)), {}, ""); }
  static constexpr const char* kFile = "run_config.yaml";
};

TEST_F(BridgeConfig, HasTheSizesOfTheModel) {
  const MegatronJob job = job_of(config(""));
  const std::int64_t attention = 32 * 32 * 2 + 2 * 32 * 16, feed = 3 * 32 * 48, norms = 2 * 32;
  EXPECT_EQ(table_of(job.spec).parameters(), 2 * 100 * 32 + 4 * (attention + feed + norms) + 32);
  EXPECT_EQ(job.micro_batch, 2);
  EXPECT_EQ(job.global_batch, 64);
  EXPECT_TRUE(job.left_out.empty());
}

TEST_F(BridgeConfig, SectionsSayHowItIsTrained) {
  const std::string text = config(
      "  pipeline_model_parallel_size: 2\n  recompute_granularity: selective\n"
      "  recompute_modules:\n  - core_attn\n  - mlp\n  cross_entropy_loss_fusion: true\n",
      "mixed_precision:\n  bf16: true\n  fp8: hybrid\n  fp8_recipe: tensorwise\n"
      "  grad_reduce_in_fp32: false\n"
      "ddp:\n  use_distributed_optimizer: true\n  overlap_grad_reduce: true\n"
      "  overlap_param_gather: true\n  bucket_size: null\n  grad_reduce_in_fp32: false\n"
      "dist:\n  use_tp_pp_dp_mapping: true\ncomm_overlap: null\n");
  const Scenario scenario = scenario_of(text);
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  EXPECT_EQ(layers.quantised, Quantised::fp8);
  EXPECT_EQ(layers.recipe, ScalingRecipe::tensorwise);
  EXPECT_EQ(layers.parameter_dtype, std::nullopt) << "gradients are reduced in bf16";
  EXPECT_EQ(layers.stack.loss, Loss::fused);
  EXPECT_TRUE(scenario.strategy.mesh.overlap_gather);
  EXPECT_EQ(scenario.strategy.mesh.pipeline, 2);
  EXPECT_EQ(scenario.strategy.mesh.axis_order, AxisOrder::tensor_pipeline_data);
  EXPECT_EQ(job_of(text).recompute, "{modules: [core_attn, mlp]}");
}

TEST_F(BridgeConfig, WhatIsKeptOnTheHostIsRead) {
  std::string text = config("  cpu_offloading: true\n  cpu_offloading_num_layers: 3\n");
  text.replace(text.find("  optimizer: adam\n"), 0,
               "  optimizer_cpu_offload: true\n  optimizer_offload_fraction: 0.5\n");
  const Scenario imported = scenario_of(text);
  const Offload& offload = std::get<LayersSettings>(imported.workload.kind).offload;
  EXPECT_EQ(offload.blocks, 3);
  EXPECT_EQ(offload.optimizer, 0.5);
}

// The types of PyTorch are maps there, as functions are.
TEST_F(BridgeConfig, MomentsHaveTheTypesOfThePrecisionAwareOptimizer) {
  const auto type = [](const std::string& name) { return "    _call_: false\n    _target_: torch." + name + "\n"; };
  const auto text_with = [&](const std::string& is_aware) {
    std::string text = config("");
    text.replace(text.find("  optimizer: adam\n"), 0,
                 "  use_precision_aware_optimizer: " + is_aware + "\n  exp_avg_dtype:\n" + type("bfloat16") +
                     "  exp_avg_sq_dtype:\n" + type("float16") + "  main_params_dtype:\n" + type("float32"));
    return text;
  };
  const Scenario imported = scenario_of(text_with("true"));
  const MomentTypes& moments = std::get<LayersSettings>(imported.workload.kind).moments;
  EXPECT_EQ(moments.first, DType::bf16);
  EXPECT_EQ(moments.second, DType::f16);
  EXPECT_THAT(imported.notes, Contains(HasSubstr("copies of parameters are whole")));
  EXPECT_EQ(job_of(text_with("false")).moments, "");
}

TEST_F(BridgeConfig, ExpertsWindowsAndLayoutsAreThoseOfTheModel) {
  const MegatronJob job = job_of(config(
      "  num_moe_experts: 8\n  moe_router_topk: 2\n  moe_ffn_hidden_size: 16\n  expert_model_parallel_size: 4\n"
      "  moe_token_dispatcher_type: flex\n  moe_flex_dispatcher_backend: hybridep\n  moe_layer_freq: [0, 1, 1, 1]\n"
      "  window_size:\n  - 7\n  - 0\n  window_attn_skip_freq: 2\n  pipeline_model_parallel_size: 2\n"
      "  pipeline_model_parallel_layout:\n  - [embedding, decoder]\n  - [decoder, decoder, decoder, loss]\n"));
  EXPECT_EQ(job.expert, 4);
  EXPECT_EQ(job.experts.dispatch, "hybridep");
  EXPECT_EQ(job.stage_blocks, (std::vector<std::int64_t>{1, 3}));
  std::vector<std::int64_t> windows;
  std::vector<bool> have_experts;
  for (const Blocks& blocks : job.spec.blocks) {
    for (std::int64_t i = 0; i < blocks.copies; ++i) {
      windows.push_back(blocks.block.attention->window);
      have_experts.push_back(blocks.block.feed_forward.experts.has_value());
    }
  }
  EXPECT_EQ(windows, (std::vector<std::int64_t>{8, 0, 8, 0}));
  EXPECT_EQ(have_experts, (std::vector{false, true, true, true}));
}

TEST_F(BridgeConfig, SharedExpertsAreComputedBesideExchanges) {
  const std::string experts =
      "  num_moe_experts: 8\n  moe_router_topk: 2\n  moe_ffn_hidden_size: 16\n  expert_model_parallel_size: 4\n"
      "  moe_shared_expert_intermediate_size: 16\n  moe_shared_expert_overlap: ";
  EXPECT_TRUE(scenario_of(config(experts + "true\n")).strategy.mesh.overlap_shared_expert);
  EXPECT_FALSE(scenario_of(config(experts + "false\n")).strategy.mesh.overlap_shared_expert);
  EXPECT_THAT(scenario_of(config(experts + "true\n")).notes, testing::Not(Contains(HasSubstr("shared-expert"))));
}

// LoRA as megatron.bridge.peft.lora has it: the joined products of Megatron-LM have one A each.
TEST_F(BridgeConfig, AdaptersAreThoseOfItsSection) {
  const auto peft = [](const std::string& modules) {
    return "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  alpha: 32\n  dim: 16\n  dropout: 0.1\n"
           "  target_modules:\n" +
           modules;
  };
  const Scenario scenario = scenario_of(config("", peft("  - linear_qkv\n  - linear_proj\n  - linear_fc1\n")));
  const Model& model = std::get<LayersSettings>(scenario.workload.kind).model;
  EXPECT_EQ(model.parameters(), 4 * 16 * ((32 + 32 + 16 + 16) + (32 + 32) + (32 + 2 * 48)));
  EXPECT_THAT(scenario.notes, Contains("not modelled: peft.dropout 0.1: adapters read their input as it is"));
  EXPECT_EQ(job_of(config("", "peft: null\n")).lora, "");
  EXPECT_EQ(refusal([&] { scenario_of(config("", peft("  - linear_xyz\n"))); }),
            "run_config.yaml:35:3: --peft-target-modules: the model has no dense layer 'linear_xyz'");
  const std::string experts = "  num_moe_experts: 4\n  moe_router_topk: 2\n  moe_ffn_hidden_size: 16\n";
  EXPECT_EQ(
      refusal([&] { scenario_of(config(experts, peft("  - linear_fc1\n"))); }),
      "run_config.yaml:38:3: --peft-target-modules: linear_fc1 is of experts only, whose adapters are not modelled; "
      "name layers that all tokens use, too: those of attention");
  const std::string with_shared = experts + "  moe_shared_expert_intermediate_size: 24\n";
  const Scenario shared = scenario_of(config(with_shared, peft("  - linear_fc1\n")));
  EXPECT_EQ(std::get<LayersSettings>(shared.workload.kind).model.parameters(), 4 * 16 * (32 + 2 * 24));
  EXPECT_THAT(shared.notes, Contains(HasSubstr("linear_fc1: adapters of experts")));
  EXPECT_THAT(refusal([&] { scenario_of(config("", "peft:\n  _target_: megatron.bridge.peft.dora.DoRA\n")); }),
              HasSubstr("'DoRA' is not modelled; LoRA is"));
}

// megatron.bridge.peft.canonical_lora: a matrix of its own for each of the joined products.
TEST_F(BridgeConfig, CanonicalAdaptersAreApart) {
  const auto peft = [](const std::string& kind, const std::string& more) {
    return "peft:\n  _target_: megatron.bridge.peft.lora." + kind + "\n  dim: 16\n" + more;
  };
  const auto layers = [&](const std::string& text) {
    const std::string& all = import_of(config("", text)).scenario;
    const std::size_t at = all.find("layers: [", all.find("lora:")) + 8;
    return all.substr(at, all.find('}', at) - at);
  };
  EXPECT_EQ(layers(peft("CanonicalLoRA", "")), "[query, key, value, attention_output, up, gate, down]");
  EXPECT_EQ(layers(peft("CanonicalLoRA", "  target_modules:\n  - linear_q\n  - linear_fc1_gate\n")), "[query, gate]");
  EXPECT_EQ(layers(peft("LoRA", "")), "[[query, key, value], attention_output, [gate, up], down]");
  const auto refused = [&](const std::string& text) { return refusal([&] { import_of(config("", text)); }); };
  EXPECT_THAT(refused(peft("CanonicalLoRA", "  target_modules:\n  - linear_qkv\n")),
              HasSubstr("'linear_qkv' is for LoRA; CanonicalLoRA has linear_q"));
  EXPECT_THAT(refused(peft("LoRA", "  target_modules:\n  - linear_q\n")), HasSubstr("'linear_q' is for CanonicalLoRA"));
  EXPECT_EQ(refused("peft:\n  dim: 16\n"),
            "run_config.yaml:30:1: --peft-kind: the section peft has no _target_: LoRA or CanonicalLoRA");
}

// Without target_modules, names that the model lacks mean nothing.
TEST_F(BridgeConfig, UsualAdaptersAreThoseThatTheModelHas) {
  const auto peft = [](const std::string& kind, const std::string& more = "") {
    return "peft:\n  _target_: megatron.bridge.peft.canonical_lora." + kind + "\n  dim: 16\n" + more;
  };
  const auto layers = [&](const std::string& text) {
    const std::string all = import_of(text).scenario;
    const std::size_t at = all.find("layers: [", all.find("lora:")) + 8;
    return all.substr(at, all.find('}', at) - at);
  };
  const auto without_gate = [](const std::string& text) {
    std::string changed = config("", text);
    const std::string gate = "gated_linear_unit: true";
    return changed.replace(changed.find(gate), gate.size(), "gated_linear_unit: false");
  };
  const std::string latent =
      "  multi_latent_attention: true\n  q_lora_rank: 16\n  kv_lora_rank: 8\n  qk_head_dim: 8\n"
      "  qk_pos_emb_head_dim: 4\n  v_head_dim: 8\n";
  EXPECT_EQ(layers(without_gate(peft("CanonicalLoRA"))), "[query, key, value, attention_output, up, down]");
  EXPECT_EQ(layers(without_gate(peft("LoRA"))), "[[query, key, value], attention_output, up, down]");
  EXPECT_EQ(layers(config(latent, peft("CanonicalLoRA"))), "[attention_output, up, gate, down]");
  EXPECT_EQ(layers(config(latent, peft("LoRA"))), "[attention_output, [gate, up], down]") << "there is no linear_qkv";
  EXPECT_EQ(
      refusal([&] { import_of(without_gate(peft("CanonicalLoRA", "  target_modules:\n  - linear_fc1_gate\n"))); }),
      "run_config.yaml:33:3: --peft-target-modules: the model has no dense layer 'linear_fc1_gate'");
  EXPECT_EQ(refusal([&] { import_of(config(latent, peft("CanonicalLoRA", "  target_modules:\n  - linear_q\n"))); }),
            "run_config.yaml:39:3: --peft-target-modules: the model has no dense layer 'linear_q': its attention is "
            "latent");
}

TEST_F(BridgeConfig, LatentAttentionHasModulesOfItsOwn) {
  const auto with = [](const std::string& attention, const std::string& module) {
    return config(attention, "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  dim: 16\n  target_modules:\n  - " +
                                 module + "\n");
  };
  const std::string latent = "  multi_latent_attention: true\n  kv_lora_rank: 8\n";
  EXPECT_EQ(refusal([&] { import_of(with(latent, "linear_qkv")); }),
            "run_config.yaml:35:3: --peft-target-modules: the model has no dense layer 'linear_qkv': its attention is "
            "latent");
  EXPECT_EQ(refusal([&] { import_of(with("", "linear_q_proj")); }),
            "run_config.yaml:33:3: --peft-target-modules: the model has no dense layer 'linear_q_proj': its attention "
            "is not latent");
  EXPECT_THAT(import_of(with(latent, "linear_q_proj\n  - linear_kv_up_proj")).scenario,
              HasSubstr("layers: [query, key_value]}"));
}

TEST_F(BridgeConfig, AdaptersMayExcludeModulesOrBeOfSomeLayers) {
  const auto peft = [](const std::string& more) {
    return "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  dim: 16\n" + more;
  };
  const std::string excluded = "  exclude_modules:\n  - output_layer\n  - '*.layers.*.linear_fc2'\n";
  EXPECT_THAT(import_of(config("", peft("  target_modules: []\n" + excluded))).scenario,
              HasSubstr("layers: [[query, key, value], attention_output, [gate, up]]}"));
  EXPECT_THAT(import_of(config("", peft("  target_modules: null\n" + excluded))).scenario,
              HasSubstr("layers: [[query, key, value], attention_output, [gate, up]]}"));
  EXPECT_THAT(refusal([&] { import_of(config("", peft(excluded))); }),
              HasSubstr("--peft-exclude-modules: cannot be given together with target_modules"));
  EXPECT_THAT(
      import_of(config("", peft("  target_modules:\n  - '*.layers.0.*.linear_qkv'\n"))).left_out,
      Contains(HasSubstr("peft.target_modules: 1 of 4 layers have adapters for [query, key, value], and here all")));
}

TEST_F(BridgeConfig, RoutingMayBeLimitedToGroupsOfExperts) {
  const auto experts = [](int groups, int used) {
    return "  num_moe_experts: 8\n  moe_router_topk: 2\n  moe_ffn_hidden_size: 16\n  expert_model_parallel_size: 4\n"
           "  moe_router_num_groups: " +
           std::to_string(groups) + "\n  moe_router_group_topk: " + std::to_string(used) + "\n";
  };
  const std::string flex = "  moe_token_dispatcher_type: flex\n  moe_flex_dispatcher_backend: deepep\n";
  const Scenario scenario = scenario_of(config(experts(4, 2) + flex));
  const RoutingGroups& groups = std::get<LayersSettings>(scenario.workload.kind).experts.groups;
  EXPECT_EQ(groups.count, 4);
  EXPECT_EQ(groups.used, 2);
  EXPECT_EQ(job_of(config(experts(4, 2))).experts.groups, 0) << "all-to-all sends a copy for each expert";
  EXPECT_EQ(refusal([&] { job_of(config(experts(3, 1) + flex)); }),
            "run_config.yaml:27:3: --moe-router-num-groups: 3 groups do not divide 8 experts");
  EXPECT_EQ(
      refusal([&] { job_of(config(experts(8, 1) + flex)); }),
      "run_config.yaml:28:3: --moe-router-group-topk: of 8 groups of experts, 1 do not have the 2 that a token uses");
}

TEST_F(BridgeConfig, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal([&] { job_of(config("  moe_layer_freq: 0\n  pipeline_model_parallel_size: none\n")); }),
            "run_config.yaml:24:3: --pipeline-model-parallel-size: expected a whole number, found 'none'");
  EXPECT_THAT(refusal([&] { job_of("_target_: megatron.bridge.training.config.ConfigContainer\nmodel: [\n"); }),
              HasSubstr("run_config.yaml:"));
  EXPECT_THAT(job_of(config("  some_new_switch: true\n")).assumed, Contains(HasSubstr("some_new_switch")));
}

}  // namespace
}  // namespace tandem
