#include "scenarios/import/models/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "scenarios/scenario/scenario.h"
#include "scenarios/workloads/activations.h"
#include "tests/scenarios/import/hugging_face_files.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class HuggingFace : public HuggingFaceFiles {};

TEST_F(HuggingFace, ParametersAreThePublishedOnes) {
  const JsonValue file =
      read_json(std::filesystem::path(TANDEM_SOURCE_DIR "/tests/scenarios/import/published_models.json"));
  int exact = 0, count = 0;
  for (const JsonValue& one : file.find("models")->items) {
    const double published = std::atof(one.find("parameters")->text.c_str());
    HuggingFaceModel model = read_hugging_face(*one.find("config"), "config.json", 0);
    if (const JsonValue* predictors = one.find("predictors")) {
      model.spec.predictors = std::atoi(predictors->text.c_str());
    }
    std::int64_t found = table_of(model.spec).parameters();
    if (model.vision) found += table_of(*model.vision).parameters();
    EXPECT_NEAR(static_cast<double>(found), published, 0.005 * published) << one.find("repository")->text;
    ++count;
    exact += static_cast<double>(found) == published ? 1 : 0;
  }
  EXPECT_EQ(count, 96);
  EXPECT_EQ(exact, 80);
}

// Full and sliding layers differ in their heads, and keys are wider than values.
TEST_F(HuggingFace, LayersHaveAttentionsOfTheirOwn) {
  const auto file = write("config.json", R"({"model_type": "mimo_v2_flash", "hidden_size": 64, "vocab_size": 100,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 24, "v_head_dim": 16,
    "swa_num_key_value_heads": 2, "hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": [0, 1, 1],
    "sliding_window": 8, "add_swa_attention_sink_bias": true, "intermediate_size": 96, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_nextn_predict_layers": 1, "new_size": 3})");
  const HuggingFaceModel model = read_hugging_face(read_json(file), "config.json", 32);
  ASSERT_EQ(model.spec.blocks.size(), 2u);
  EXPECT_EQ(model.spec.blocks[0].block.attention->window, 0);
  EXPECT_EQ(model.spec.blocks[1].block.attention->window, 8);
  EXPECT_EQ(model.spec.blocks[1].block.attention->key_heads, 2);
  EXPECT_FALSE(model.spec.blocks[0].block.feed_forward.experts);
  const std::int64_t h = 64, full = h * (4 * 24 + 24 + 16 + 4 * 16),
                     sliding = h * (4 * 24 + 2 * (24 + 16) + 4 * 16) + 4;
  EXPECT_EQ(table_of(model.spec).parameters(),
            2 * 100 * h + h + 3 * 2 * h + full + 3 * h * 96 + 2 * (sliding + 4 * 3 * h * 32 + 4 * h + 4));
  EXPECT_THAT(model.assumed, testing::Contains("layers that predict more tokens (num_nextn_predict_layers 1) are left "
                                               "out: neither their parameters nor their work is counted"));
  EXPECT_THAT(model.assumed, testing::Contains("have no effect here: new_size"));
  EXPECT_EQ(problem(R"({"model_type": "mimo_v2_flash", "hidden_size": 64, "vocab_size": 100, "num_hidden_layers": 3,
    "num_attention_heads": 4, "hybrid_layer_pattern": [0, 1]})"),
            "config.json:2:55: hybrid_layer_pattern: needs an entry for each of 3 layers");
}

TEST_F(HuggingFace, TheLanguageModelOfUnknownPartsIsRead) {
  const auto file = write("config.json", R"({"model_type": "new_vl", "text_config": )" + std::string(kSmall) + "}");
  const HuggingFaceModel model = read_hugging_face(read_json(file), "config.json", 0);
  EXPECT_EQ(model.spec.hidden, 64);
  EXPECT_THAT(model.assumed, testing::Contains("only the language model ('llama') of 'new_vl' is counted"));
  EXPECT_THAT(problem(R"({"model_type": "new_vl", "text_config": {"model_type": "new_text", "hidden_size": 64}})"),
              HasSubstr("model_type: unknown architecture 'new_vl'"));
}

// The reader of model files counts again what the table says.
TEST_F(HuggingFace, EveryTableIsAModelFile) {
  const JsonValue file =
      read_json(std::filesystem::path(TANDEM_SOURCE_DIR "/tests/scenarios/import/published_models.json"));
  for (const JsonValue& one : file.find("models")->items) {
    const ModelTable made = table(*one.find("config"));
    const Model read = read_model(write("model.yaml", made.yaml()));
    EXPECT_EQ(read.parameters(), made.parameters()) << one.find("repository")->text;
    EXPECT_EQ(read.forward_macs(), made.macs()) << one.find("repository")->text;
  }
}

TEST_F(HuggingFace, ProductsFollowTheSequence) {
  const Model model = this->model(kSmall, {{"tokens", 32}});
  // Of a block: queries, keys, values, output; gate, up, down. Then the scores and their use; at last the vocabulary.
  const std::int64_t block = 32 * (64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 96) + 2 * 4 * 32 * 32 * 16;
  EXPECT_EQ(model.forward_macs(), 2 * block + 32 * 64 * 100);
  EXPECT_EQ(model.parameters(), 2 * (64 * 64 * 2 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64) + 2 * 100 * 64 + 64);
  EXPECT_EQ(model.unit, "sequences");
  EXPECT_EQ(model.input_elements, 32);
  EXPECT_EQ(this->model(kSmall).input_elements, 128);  // what the model can
}

TEST_F(HuggingFace, FlashAttentionKeepsNoScores) {
  const Model model = this->model(kSmall, {{"tokens", 32}});
  EXPECT_EQ(model.stack.attention, AttentionKernels::flash);
  const ActivationSettings with{.examples = 1, .dtype = DType::bf16};
  ActivationSettings without = with;
  without.keeps_scores = false;
  // Of both blocks: the softmax's output, kept by it and by the product that reads it.
  EXPECT_EQ(activation_bytes(model.layers, with) - activation_bytes(model.layers, without), 2 * 2 * 2 * 4 * 32 * 32);
}

TEST_F(HuggingFace, TokensUseSomeExperts) {
  const std::string config = R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 32})";
  const ModelTable table = this->table(read_json(write("c.json", config)));
  const std::int64_t expert = 3 * 64 * 96;
  EXPECT_EQ(table.parameters() - table.used_parameters(), 2 * 6 * expert);
  const Model model = this->model(config);
  std::int64_t products = 0;
  for (const Layer& layer : model.layers) {
    if (layer.gemm && layer.gemm->experts > 1) products += layer.forward_macs();
  }
  EXPECT_EQ(products, 2 * 2 * 32 * expert);
}

TEST_F(HuggingFace, LayersOfAWindowReadFewerTokens) {
  const std::string config = R"({"model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "sliding_window": 8, "max_position_embeddings": 32})";
  int narrow = 0, wide = 0;
  for (const Layer& layer : model(config).layers) {
    if (layer.name.ends_with(".scores")) ++(layer.gemm->columns == 8 ? narrow : wide);
  }
  EXPECT_EQ(narrow, 5);
  EXPECT_EQ(wide, 1);
}

// DeepSeek v3.2: an indexer chooses the tokens that attention sees. GLM-5.2: a layer may use an earlier one's choice.
TEST_F(HuggingFace, SparseAttentionReadsTheTokensThatAnIndexerChooses) {
  const auto file = write("config.json", R"({"model_type": "glm_moe_dsa", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 3, "num_attention_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 16,
    "qk_nope_head_dim": 12, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "first_k_dense_replace": 3, "index_topk": 32, "index_n_heads": 2,
    "index_head_dim": 8, "indexer_types": ["full", "shared", "full"], "max_position_embeddings": 128})");
  const Model model = read_model(file);
  const auto layers_named = [&](const char* name) {
    std::vector<const Layer*> found;
    for (const Layer& layer : model.layers) {
      if (layer.name.ends_with(name)) found.push_back(&layer);
    }
    return found;
  };
  ASSERT_EQ(layers_named(".scores").size(), 3u);
  for (const Layer* scores : layers_named(".scores")) {
    EXPECT_EQ(scores->gemm->columns, 32);
    EXPECT_DOUBLE_EQ(scores->gemm->attended, 1 - 31.0 / 256) << "the first tokens see fewer";
  }
  ASSERT_EQ(layers_named(".index_scores").size(), 2u);
  const std::int64_t indexer = 24 * 2 * 8 + 64 * 8 + 2 * 8 + 64 * 2;
  std::int64_t found = 0;
  for (const char* name : {".index_query", ".index_key", ".index_weights"}) {
    for (const Layer* layer : layers_named(name)) found += layer->parameters();
  }
  EXPECT_EQ(found, 2 * indexer);
  EXPECT_EQ(layers_named(".index_scores").front()->forward_macs(), 128 * 128 * 2 * 8);
  EXPECT_THAT(read_hugging_face(read_json(file), "config.json", 0).assumed,
              testing::Contains(HasSubstr("sparse attention: a token reads 32 tokens")));
  // As many tokens as it chooses: all are seen, and the indexer works nevertheless.
  EXPECT_EQ(read_model(file, {{"tokens", 32}}).forward_macs() * 4,
            read_model(file, {{"tokens", 128}}).forward_macs() - 2 * (128 - 32) * 128 * 2 * 8);
}

// Llama 4: three of four layers see the tokens of their chunk only.
TEST_F(HuggingFace, ChunksHaveTheirPairsOfTokens) {
  const std::string config = R"({"model_type": "llama4_text", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_local_experts": 4, "num_experts_per_tok": 1, "attention_chunk_size": 1024, "max_position_embeddings": 8192})";
  const auto pairs = [&](std::int64_t tokens) {
    std::vector<double> of_layers;
    for (const Layer& layer : model(config, {{"tokens", tokens}}).layers) {
      if (!layer.name.ends_with(".scores")) continue;
      const Layer::Gemm& gemm = *layer.gemm;
      of_layers.push_back(static_cast<double>(gemm.rows) * static_cast<double>(gemm.columns) * gemm.attended);
    }
    return of_layers;
  };
  const auto triangle = [](double tokens) { return tokens * (tokens + 1) / 2; };
  EXPECT_EQ(pairs(1024), std::vector<double>(4, triangle(1024)));
  for (const auto& [tokens, expected] :
       std::map<std::int64_t, double>{{4096, 4 * triangle(1024)}, {2560, 2 * triangle(1024) + triangle(512)}}) {
    const std::vector<double> found = pairs(tokens);
    ASSERT_EQ(found.size(), 4u);
    for (const std::size_t chunked : {0u, 1u, 2u}) EXPECT_NEAR(found[chunked], expected, 1e-3 * expected);
    EXPECT_DOUBLE_EQ(found[3], triangle(static_cast<double>(tokens)));
  }
}

TEST_F(HuggingFace, AVisionTowerIsCountedApart) {
  const std::string config = R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 64,
    "intermediate_size": 96, "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16}, "vision_config": {"model_type": "siglip_vision_model",
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28,
    "patch_size": 14, "vision_use_head": false}})";
  const HuggingFaceModel model = read_hugging_face(read_json(write("c.json", config)), "c.json", 0);
  ASSERT_TRUE(model.vision.has_value());
  const std::int64_t block = 4 * (32 * 32 + 32) + 2 * 32 * 48 + 48 + 32 + 4 * 32;
  const std::int64_t patches = 3 * 14 * 14 * 32 + 32 + 4 * 32;
  EXPECT_EQ(table_of(*model.vision).parameters(), patches + block + 2 * 32 + 32 * 64 + 32);
}

// As the files of Gemma 3 are: google/gemma-3-4b-it has 4.30 billion parameters.
TEST_F(HuggingFace, PartsHaveTheirFamilysDefaults) {
  const std::string config = R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
    "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}})";
  const HuggingFaceModel model = read_hugging_face(read_json(write("c.json", config)), "c.json", 0);
  EXPECT_EQ(table_of(model.spec).parameters(), 3'880'263'168);
  EXPECT_THAT(model.assumed,
              testing::Contains("text_config.vocab_size 262208, the default of 'gemma3_text' in transformers"));
}

TEST_F(HuggingFace, UnknownArchitecturesAreRefusedWithTheNearestOne) {
  const auto nearest = [&](const std::string& type, const std::string& more = "") {
    return problem(fmt::format(R"({{"model_type": "{}"{}}})", type, more));
  };
  const auto advice = [](const std::string& name) {
    return "the nearest one known is '" + name + "': put that in its place only if the layers are alike";
  };
  EXPECT_EQ(nearest("qwen4"), "config.json:1:16: model_type: unknown architecture 'qwen4'; " + advice("qwen3"));
  for (const auto& [type, known] : std::map<std::string, std::string>{{"lama", "llama"},
                                                                      {"gemma3n", "gemma3"},
                                                                      {"deepseek_v4", "deepseek_v3"},
                                                                      {"qwen2_audio_encoder", "qwen2_vl_text"},
                                                                      {"gpt-neox", "gpt_neox"},
                                                                      {"albert", "bert"}}) {
    EXPECT_THAT(nearest(type), testing::EndsWith(advice(known)));
  }
  EXPECT_THAT(nearest("abcdefgh", R"(, "kv_lora_rank": 8)"), HasSubstr("by its keys " + advice("deepseek_v3")));
  EXPECT_THAT(nearest("zzz", R"(, "num_experts": 8)"), HasSubstr(advice("mixtral")));
  EXPECT_THAT(nearest("zzz", R"(, "patch_size": 8)"), HasSubstr(advice("vit")));
  EXPECT_THAT(nearest("zzz", R"(, "hidden_size": 8, "num_attention_heads": 2, "rms_norm_eps": 1e-5)"),
              HasSubstr(advice("llama")));
  EXPECT_THAT(nearest("zzz", R"(, "hidden_size": 8)"),
              testing::AllOf(HasSubstr("'zzz', and none that is known is near; known are afmoe, "),
                             HasSubstr(", llama, "), testing::EndsWith(", yi")));
  EXPECT_THAT(problem(R"({"architectures": ["X"]})"), HasSubstr("1:1: model_type: is missing"));
}

TEST_F(HuggingFace, WhatIsNotModelledIsNamed) {
  const auto says = [&](const std::string& type, const std::string& more = "") {
    const std::string text = problem(fmt::format(R"({{"model_type": "{}"{}}})", type, more));
    const std::string before = "config.json:1:16: model_type: unknown architecture '" + type + "': ";
    EXPECT_THAT(text, testing::StartsWith(before));
    return text.substr(std::min(text.size(), before.size()));
  };
  for (const char* type : {"t5", "mt5", "flan-t5", "bart", "mbart", "whisper", "vision-encoder-decoder", "detr"}) {
    EXPECT_EQ(says(type), "models with an encoder and a decoder are not modelled");
  }
  EXPECT_EQ(says("lamma", R"(, "is_encoder_decoder": true)"), "models with an encoder and a decoder are not modelled");
  EXPECT_EQ(says("mamba"), "state-space layers without attention are not modelled");
  EXPECT_EQ(says("falcon_mamba"), says("mamba2"));
  EXPECT_EQ(says("zzz", R"(, "state_size": 16)"), says("mamba"));
  EXPECT_THAT(says("jamba"), testing::AllOf(HasSubstr("state-space layers among those of attention"),
                                            HasSubstr("the nearest one known is 'nemotron_h'")));
  EXPECT_EQ(says("zzz", R"(, "mamba_d_state": 16, "num_attention_heads": 8)"), says("jamba"));
  EXPECT_EQ(says("rwkv", R"(, "hidden_size": 8)"), "recurrent layers without attention are not modelled");
  EXPECT_THAT(says("swinv2", R"(, "patch_size": 4)"), HasSubstr("the nearest one known is 'vit'"));
  EXPECT_EQ(says("donut-swin"), says("swin"));
  EXPECT_THAT(says("resnet"), HasSubstr("convolutions"));
}

TEST_F(HuggingFace, SaysWhatIsWrongAndWhere) {
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kSmall;
    text.replace(text.find(from), from.size(), to);
    return problem(text);
  };
  EXPECT_EQ(with("\"hidden_size\": 64, ", ""),
            "config.json:1:1: hidden_size: is missing, and the size of the model depends on it");
  EXPECT_EQ(with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": -2"),
            "config.json:2:24: num_hidden_layers: expected a whole number from 1 to 1099511627776, found '-2'");
  EXPECT_EQ(with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 9999999"),
            "config.json:2:24: num_hidden_layers: is more than any model has: 9999999");
  EXPECT_EQ(with("96", "\"wide\""),
            "config.json:1:65: intermediate_size: expected a whole number from 1 to "
            "1099511627776, found 'wide'");
  EXPECT_THAT(with("64, \"intermediate_size\": 96", "1099511627776, \"intermediate_size\": 1099511627776"),
              HasSubstr("is larger than any"));
  const auto file = write("config.json", kSmall);
  EXPECT_EQ(refusal([&] { import_file(file, {.batch = 4}, ""); }),
            "config.json:1:1: a batch of 4 leaves some of 8 GPUs without an example: --batch, --devices and --workers");
  EXPECT_EQ(refusal([&] { import_file(file, {.strategy = "mirrored", .workers = 2}, ""); }),
            "config.json:1:1: strategy 'mirrored' runs on one machine, not on 2: --strategy and --workers");
  EXPECT_THAT(
      problem(R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 9, "n_inner": []})"),
      HasSubstr("n_inner: expected a whole number"));
}

}  // namespace
}  // namespace tandem
