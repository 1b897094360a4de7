// Which layers have low-rank adapters, as PEFT and Megatron-Bridge name them.
#include "scenarios/import/models/adapters.h"

#include <fmt/format.h>

#include <set>

#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kDense = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
  "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128})";
constexpr const char* kWithExperts = R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 96,
  "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "max_position_embeddings": 128})";

constexpr const char* kWithSharedExpert = R"({"model_type": "qwen2_moe", "hidden_size": 64, "intermediate_size": 96,
  "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 4,
  "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 48,
  "max_position_embeddings": 128})";

constexpr const char* kGpt2 = R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100,
  "n_positions": 128})";
constexpr const char* kBert = R"({"model_type": "bert", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 100,
  "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128, "type_vocab_size": 2,
  "architectures": ["BertForMaskedLM"]})";
constexpr const char* kInternlm2 = R"({"model_type": "internlm2", "hidden_size": 64, "intermediate_size": 96,
  "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128})";
constexpr const char* kNeox =
    R"({"model_type": "gpt_neox", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 100,
  "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128})";

constexpr const char* kPhi3 = R"({"model_type": "phi3", "hidden_size": 64, "intermediate_size": 96,
  "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128})";
constexpr const char* kLatent = R"({"model_type": "minicpm3", "hidden_size": 64, "intermediate_size": 96,
  "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 16,
  "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "max_position_embeddings": 128})";

class AdapterFiles : public ImportFiles {
 protected:
  Imported imported(const std::string& adapters, const std::string& config = kDense) const {
    const auto file = write("config.json", config);
    return import_file(InputFile(file), {.batch = 8, .lora = write("adapter_config.json", adapters).string()}, "");
  }
  Model model_of(const std::string& adapters) const {
    const Scenario scenario = parse_scenario(imported(adapters).scenario, (folder_ / "job.yaml").string());
    return std::get<LayersSettings>(scenario.workload.kind).model;
  }
  std::string problem(const std::string& adapters, const std::string& config = kDense) const {
    return refusal([&] { imported(adapters, config); });
  }
};

TEST_F(AdapterFiles, ModulesOfPeftAreRowsOfTheTable) {
  const Imported found = imported(R"({"peft_type": "LORA", "r": 8, "lora_alpha": 32, "lora_dropout": 0.05,
    "bias": "none", "target_modules": ["self_attn.q_proj", "v_proj", "down_proj"]})");
  EXPECT_THAT(found.scenario, HasSubstr("lora: {rank: 8, layers: [query, value, down]}"));
  EXPECT_THAT(found.left_out, Contains("lora_dropout 0.05: adapters read their input as it is"));
  const Model model = model_of(R"({"r": 8, "target_modules": ["q_proj", "v_proj", "down_proj"]})");
  EXPECT_EQ(model.parameters(), 2 * 8 * ((64 + 64) + (64 + 32) + (96 + 64)));
  EXPECT_EQ(model.frozen_parameters(), 2 * (64 * 64 * 2 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64) + 2 * 100 * 64 + 64);
}

TEST_F(AdapterFiles, AllLinearModulesAreThoseOfBlocks) {
  EXPECT_THAT(imported(R"({"r": 4, "target_modules": "all-linear"})").scenario,
              HasSubstr("layers: [query, key, value, attention_output, gate, up, down]}"));
  const Imported experts = imported(R"({"r": 4, "target_modules": "all-linear"})", kWithExperts);
  EXPECT_THAT(experts.scenario, HasSubstr("layers: [query, key, value, attention_output]}"));
  EXPECT_THAT(experts.left_out, Contains("all-linear: adapters of experts"));
  EXPECT_THAT(imported(R"({"r": 4, "target_modules": "all-linear"})", kGpt2).scenario,
              HasSubstr("layers: [[query, key, value], attention_output, up, down]}"))
      << "c_attn is one product";
}

// The gate that weighs a shared expert has one output, which is no gate of a gated product.
TEST_F(AdapterFiles, TheGateOfASharedExpertHasANameOfItsOwn) {
  const auto layers = [&](const std::string& modules, int rank) {
    const std::string text =
        imported(fmt::format(R"({{"r": {}, "target_modules": {}}})", rank, modules), kWithSharedExpert).scenario;
    const std::size_t at = text.find("layers: [", text.find("lora:"));
    return text.substr(at, text.find('}', at) - at);
  };
  EXPECT_EQ(layers("\"all-linear\"", 4),
            "layers: [query, key, value, attention_output, shared_gate, shared_up, shared_down]");
  EXPECT_EQ(layers(R"(["shared_expert_gate"])", 1), "layers: [shared_expert_gate]");
  const Scenario scenario =
      parse_scenario(import_file(InputFile(write("config.json", kWithSharedExpert)), {.batch = 8}, "").scenario,
                     (folder_ / "job.yaml").string());
  std::set<std::string> names;
  for (const Layer& layer : std::get<LayersSettings>(scenario.workload.kind).model.layers) {
    EXPECT_TRUE(names.insert(layer.name).second) << layer.name;
  }
}

// A product that a framework joins has one A. Elsewhere no module has its name.
TEST_F(AdapterFiles, JoinedModulesHaveTheirFirstMatrixTogether) {
  const std::string joined = R"({"r": 4, "target_modules": ["qkv_proj", "gate_up_proj"]})";
  const Imported found = imported(joined, kPhi3);
  EXPECT_THAT(found.scenario, HasSubstr("layers: [[query, key, value], [gate, up]]}"));
  const Scenario scenario = parse_scenario(found.scenario, (folder_ / "job.yaml").string());
  EXPECT_EQ(std::get<LayersSettings>(scenario.workload.kind).model.parameters(),
            2 * 4 * ((64 + 64 + 2 * 32) + (64 + 2 * 96)));
  EXPECT_EQ(problem(joined),
            "adapter_config.json:1:29: target_modules: the model has no dense layer 'qkv_proj': what it joins is apart "
            "there");
  EXPECT_THAT(problem(R"({"r": 4, "target_modules": ["gate_up_proj"]})"), HasSubstr("no dense layer 'gate_up_proj'"));
  EXPECT_THAT(problem(R"({"r": 4, "target_modules": ["qkv_proj"]})", kWithExperts),
              HasSubstr("no dense layer 'qkv_proj'"));
  EXPECT_THAT(problem(R"({"r": 4, "target_modules": ["qkv_proj"]})", kLatent), HasSubstr("no dense layer 'qkv_proj'"));
  EXPECT_THAT(imported(R"({"r": 4, "target_modules": "all-linear"})", kLatent).scenario,
              HasSubstr("layers: [query_down, key_value_down, query, key_value, attention_output, gate, up, down]}"));
}

TEST_F(AdapterFiles, NamesAreThoseOfTheArchitecture) {
  const auto layers = [&](const std::string& names, const char* config) {
    const std::string text = imported(R"({"r": 4, "target_modules": [)" + names + "]}", config).scenario;
    const std::size_t at = text.find("layers: [", text.find("lora:")) + 8;
    return text.substr(at, text.find('}', at) - at);
  };
  EXPECT_EQ(layers(R"("c_attn", "c_fc")", kGpt2), "[[query, key, value], up]");
  EXPECT_EQ(layers(R"("c_proj")", kGpt2), "[attention_output, down]") << "both modules of that name";
  EXPECT_EQ(layers(R"("attn.c_proj")", kGpt2), "[attention_output]");
  EXPECT_EQ(layers(R"("mlp.c_proj")", kGpt2), "[down]");
  EXPECT_EQ(layers(R"("wqkv", "w1", "w3", "w2")", kInternlm2), "[[query, key, value], gate, up, down]");
  EXPECT_EQ(layers(R"("query_key_value", "dense", "dense_h_to_4h")", kNeox),
            "[[query, key, value], attention_output, up]");
  EXPECT_EQ(layers(R"("query", "value", "dense")", kBert), "[query, value, attention_output, up, down]");
  EXPECT_EQ(layers(R"("output.dense")", kBert), "[attention_output, down]");
  EXPECT_EQ(layers(R"("attention.output.dense", "intermediate.dense")", kBert), "[attention_output, up]");
  EXPECT_EQ(layers(R"("encoder.layer.0.output.dense", "encoder.layer.1.output.dense")", kBert), "[down]");
  EXPECT_THAT(problem(R"({"r": 4, "target_modules": ["dense"]})"), HasSubstr("the model has no dense layer 'dense'"));
}

TEST_F(AdapterFiles, SaysWhereOnlySomeLayersHaveThem) {
  const auto left_out = [&](const std::string& targets) { return imported(R"({"r": 4, )" + targets + "}").left_out; };
  const char* const effect = ", and here all: more parameters learn, and gradients go down to the first";
  EXPECT_THAT(left_out(R"("target_modules": ["layers.0.q_proj", "v_proj"])"),
              Contains(std::string("target_modules: 1 of 2 layers have adapters for query") + effect));
  EXPECT_THAT(left_out(R"("target_modules": ["v_proj"], "layers_to_transform": [1])"),
              Contains(std::string("layers_to_transform: 1 of 2 layers have adapters") + effect));
  EXPECT_THAT(left_out(R"("target_modules": ["v_proj"], "layers_to_transform": 1)"),
              Contains(HasSubstr("layers_to_transform: 1 of 2 layers")));
  EXPECT_THAT(left_out(R"("target_modules": ["layers.0.q_proj", "layers.1.q_proj"], "layers_to_transform": [0, 1])"),
              testing::IsEmpty());
}

TEST_F(AdapterFiles, NamesWhatIsNotModelled) {
  const auto left_out = [&](const std::string& more) {
    return imported(R"({"r": 4, "target_modules": ["v_proj"], )" + more + "}").left_out;
  };
  EXPECT_THAT(left_out(R"("target_parameters": ["mlp.experts.down_proj"])"),
              testing::ElementsAre("target_parameters: adapters of single parameters, such as those of experts: fewer "
                                   "parameters learn"));
  EXPECT_THAT(left_out(R"("layer_replication": [[0, 2], [1, 2]])"),
              testing::ElementsAre("layer_replication: every layer is there once: fewer layers, and fewer adapters"));
  for (const char* indices : {"[5, 7]", R"({"embed_tokens": [5, 7]})"}) {
    EXPECT_THAT(left_out(std::string(R"("trainable_token_indices": )") + indices),
                testing::ElementsAre("trainable_token_indices: the embedding is frozen: fewer parameters learn, and no "
                                     "gradients go down to it"));
  }
  EXPECT_THAT(left_out(R"("target_parameters": null, "layer_replication": null, "trainable_token_indices": null)"),
              testing::IsEmpty());
}

TEST_F(AdapterFiles, ExcludedModulesHaveNone) {
  const Imported all =
      imported(R"({"r": 4, "target_modules": "all-linear", "exclude_modules": ["k_proj", "mlp.down_proj",
    "lm_head", "vision"]})");
  EXPECT_THAT(all.scenario, HasSubstr("layers: [query, value, attention_output, gate, up]}"));
  EXPECT_THAT(all.left_out, testing::IsEmpty());
  EXPECT_THAT(
      imported(R"({"r": 4, "target_modules": ["q_proj"], "exclude_modules": ["layers.0.self_attn.q_proj"]})").left_out,
      Contains("exclude_modules: 1 of 2 layers have no adapters for query, and here all have"));
}

// PEFT takes every module whose path ends with a name.
TEST_F(AdapterFiles, ASharedExpertIsAmongTheModulesOfAName) {
  const auto adapters = [&](const std::string& names) {
    return imported(R"({"r": 4, "target_modules": [)" + names + "]}", kWithSharedExpert);
  };
  const Imported all = adapters(R"("gate_proj", "q_proj")");
  EXPECT_THAT(all.scenario, HasSubstr("layers: [shared_gate, query]}"));
  EXPECT_THAT(all.left_out, testing::ElementsAre("gate_proj: adapters of experts"));
  const Imported only = adapters(R"("mlp.shared_expert.down_proj", "layers.0.mlp.shared_expert.up_proj")");
  EXPECT_THAT(only.scenario, HasSubstr("layers: [shared_down, shared_up]}"));
  EXPECT_THAT(only.left_out, testing::ElementsAre(HasSubstr("1 of 2 layers have adapters for shared_up")));
  EXPECT_THAT(adapters(R"("q_proj", "mlp.experts.0.gate_proj")").scenario, HasSubstr("layers: [query]}"));
}

TEST_F(AdapterFiles, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(problem(R"({"r": 8, "target_modules": ["q_proj", "c_fc"]})"),
            "adapter_config.json:1:39: target_modules: the model has no dense layer 'c_fc'");
  EXPECT_EQ(problem(R"({"peft_type": "IA3", "r": 8})"),
            "adapter_config.json:1:15: peft_type: 'IA3' is not modelled; LORA is");
  EXPECT_EQ(problem(R"({"target_modules": ["q_proj"]})"),
            "adapter_config.json:1:1: r: is missing, and the size of the model depends on it");
  EXPECT_EQ(problem(R"({"r": 8, "target_modules": ".*_proj"})"),
            "adapter_config.json:1:28: target_modules: expected a list of names or all-linear; a regular expression is "
            "not read");
  EXPECT_EQ(problem(R"({"r": 8, "target_modules": ["layers.[01].q_proj"]})"),
            "adapter_config.json:1:29: target_modules: which layers 'layers.[01].q_proj' means is not read: expected "
            "names, numbers and *");
  EXPECT_EQ(
      problem(R"({"r": 8, "target_modules": ["model.layers.2.self_attn.q_proj"]})"),
      "adapter_config.json:1:29: target_modules: 'model.layers.2.self_attn.q_proj': the model has 2 layers, counted "
      "from 0");
  const std::string of_experts =
      "of experts only, whose adapters are not modelled; name layers that all tokens use, too";
  EXPECT_EQ(problem(R"({"r": 8, "target_modules": ["gate_proj"]})", kWithExperts),
            "adapter_config.json:1:28: target_modules: gate_proj is " + of_experts + ": those of attention");
  EXPECT_EQ(problem(R"({"r": 8, "target_modules": ["gate_proj", "up_proj", "down_proj"]})", kWithExperts),
            "adapter_config.json:1:28: target_modules: down_proj, gate_proj, up_proj are " + of_experts +
                ": those of attention");
  EXPECT_EQ(problem(R"({"r": 8, "target_modules": ["shared_expert.gate_proj"]})", kWithExperts),
            "adapter_config.json:1:29: target_modules: the model has no dense layer 'shared_expert.gate_proj'");
  EXPECT_EQ(problem(R"({"r": 8, "target_modules": []})"), "adapter_config.json:1:28: target_modules: names no layer");
  EXPECT_EQ(problem(R"({"r": 8, "target_modules": [], "target_parameters": ["mlp.experts.down_proj"]})", kWithExperts),
            "adapter_config.json:1:53: target_parameters: adapters of single parameters are not modelled, and "
            "target_modules names no layer");
  const auto toml = write("job.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n");
  EXPECT_THAT(refusal([&] { import_file(InputFile(toml), {.lora = "x"}, ""); }),
              HasSubstr("--lora is for a Hugging Face configuration only"));
}

}  // namespace
}  // namespace tandem
