// Scenarios of models of Hugging Face: devices, meshes, experts, and what was assumed.
#include <algorithm>

#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/hugging_face_files.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class HuggingFaceScenarios : public HuggingFaceFiles {};

bool has_loss(const Layer& layer) {
  return std::ranges::count(layer.then, Pointwise::cross_entropy) > 0;
}

TEST_F(HuggingFaceScenarios, BecomesAScenario) {
  const auto file = write("config.json", kSmall);
  const Imported imported = import_file(file, {.tokens = 16, .batch = 16, .recompute = true}, "");
  const Scenario scenario = parse_scenario(imported.scenario, file.string());
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  EXPECT_EQ(scenario.workload.batch, 16);
  EXPECT_EQ(layers.dtype, DType::bf16);
  EXPECT_EQ(layers.model.input_elements, 16);
  EXPECT_TRUE(layers.recomputed.any);
  EXPECT_THAT(imported.facts, testing::Contains("parameters: 74,560"));
  EXPECT_THAT(imported.assumed, testing::Contains("machine hgx-h100 (--topology)"));
  EXPECT_THAT(imported.assumed, testing::Not(testing::Contains(HasSubstr("global batch"))));
}

TEST_F(HuggingFaceScenarios, AttentionOfDecodersIsCausal) {
  const auto attended = [&](const std::string& config, const char* layer) {
    for (const Layer& one : model(config).layers) {
      if (one.name.ends_with(layer)) return one.gemm->attended;
    }
    return 0.0;
  };
  const double half = 1 - 127.0 / 256;  // of 128 tokens
  EXPECT_DOUBLE_EQ(attended(kSmall, ".scores"), half);
  EXPECT_DOUBLE_EQ(attended(kSmall, ".context"), half);
  const std::string windows = R"({"model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "sliding_window": 8, "max_position_embeddings": 32})";
  // The first tokens see fewer than 8 keys: 7 + 6 + ... + 1 of 32 x 8 pairs are left out.
  EXPECT_DOUBLE_EQ(attended(windows, ".scores"), 1 - 28.0 / 256);
  const std::string bert = R"({"model_type": "bert", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 100,
    "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 32})";
  EXPECT_EQ(attended(bert, ".scores"), 1);
}

TEST_F(HuggingFaceScenarios, OptionsDivideItOverAMesh) {
  const auto file = write("config.json", kSmall);
  const Imported imported =
      import_file(file, {.batch = 16, .workers = 2, .tensor = 2, .pipeline = 2, .micro_batch = 2}, "");
  const Scenario scenario = parse_scenario(imported.scenario, file.string());
  const MeshSettings& mesh = scenario.strategy.mesh;
  EXPECT_EQ(scenario.strategy.name, "mesh");
  EXPECT_EQ(std::vector({mesh.data, mesh.tensor, mesh.pipeline, mesh.micro_batches}), (std::vector{4, 2, 2, 2}));
  EXPECT_TRUE(mesh.distributed_optimizer);
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  EXPECT_TRUE(layers.sequence_parallel);
  EXPECT_EQ(layers.parameter_dtype, DType::f32);
  EXPECT_EQ(layers.stack.accumulation, Accumulation::in_products);
}

TEST_F(HuggingFaceScenarios, BlocksThatPredictFurtherTokensAreAFileOfTheirOwn) {
  const auto file = write("config.json", kSmall);
  const Imported imported = import_file(file, {.predictors = 1, .pipeline = 2}, "job.model.yaml");
  write("job.model.yaml", imported.model);
  const Scenario scenario = parse_scenario(imported.scenario, (folder_ / "job.yaml").string());
  EXPECT_EQ(scenario.strategy.mesh.stage_blocks, (std::vector{2, 1})) << "one more than the configuration has";
  const std::vector<Layer>& layers = std::get<LayersSettings>(scenario.workload.kind).model.layers;
  EXPECT_EQ(std::ranges::count_if(layers, [](const Layer& layer) { return has_loss(layer); }), 2);
  EXPECT_EQ(layers.back().name, "head");
  EXPECT_THAT(refusal([&] { import_file(file, {.predictors = 1}, ""); }),
              HasSubstr("--predictors: makes a model of its own, whose file goes beside the scenario: give --output"));
}

TEST_F(HuggingFaceScenarios, RowsReachExpertsAsAsked) {
  const auto file = write("config.json", R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 32})");
  const Imported imported = import_file(file, {.dispatch = "deepep", .expert = 4}, "");
  const Scenario scenario = parse_scenario(imported.scenario, file.string());
  EXPECT_EQ(std::get<LayersSettings>(scenario.workload.kind).experts.dispatch, Dispatch::deepep);
  const Imported wide = import_file(file, {.devices = 4, .expert = 8}, "");
  EXPECT_EQ(parse_scenario(wide.scenario, file.string()).strategy.mesh.data, 8) << "two machines, as the experts need";
  const auto small = write("small.json", kSmall);
  const auto refused = [this](const std::filesystem::path& of, const ImportChoices& choices) {
    return refusal([&] { import_file(of, choices, ""); });
  };
  EXPECT_THAT(refused(small, {.dispatch = "deepep", .tensor = 2}), HasSubstr("--dispatch: the model has no experts"));
  EXPECT_THAT(refused(file, {.dispatch = "deepep"}), HasSubstr("--dispatch is for --strategy mesh"));
}

// DeepSeek v3: a token's experts are in at most four of eight groups.
TEST_F(HuggingFaceScenarios, RoutingIsLimitedToGroupsOfExperts) {
  const auto config = [&](const std::string& more) {
    return write("config.json", R"({"model_type": "deepseek_v3", "hidden_size": 64, "intermediate_size": 96,
      "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "kv_lora_rank": 16, "qk_nope_head_dim": 12,
      "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 16, "num_experts_per_tok": 4,
      "moe_intermediate_size": 32, "max_position_embeddings": 32)" +
                                    more + "}");
  };
  const auto groups = [&](const std::string& more, const std::string& dispatch) {
    const auto file = config(more);
    const Imported imported = import_file(file, {.dispatch = dispatch, .expert = 4}, "");
    const Scenario scenario = parse_scenario(imported.scenario, file.string());
    return std::get<LayersSettings>(scenario.workload.kind).experts.groups;
  };
  const std::string limit = R"(, "n_group": 8, "topk_group": 4)";
  EXPECT_EQ(groups(limit, "deepep").count, 8);
  EXPECT_EQ(groups(limit, "deepep").used, 4);
  EXPECT_EQ(groups(limit, "all_to_all").count, 0) << "a copy for each expert, wherever it is";
  EXPECT_EQ(groups(R"(, "n_group": 1, "topk_group": 1)", "deepep").count, 0);
}

TEST_F(HuggingFaceScenarios, AMeshHasWhatIsLeftOfTheDevicesAsReplicas) {
  const auto file = write("config.json", kSmall);
  const auto mesh_of = [&](const ImportChoices& choices) {
    return parse_scenario(import_file(file, choices, "").scenario, file.string()).strategy.mesh;
  };
  EXPECT_EQ(mesh_of({.strategy = "mesh"}).data, 8);
  EXPECT_EQ(mesh_of({.devices = 4, .tensor = 4, .pipeline = 2}).data, 1) << "on the two machines that it needs";
  const auto refused = [&](const ImportChoices& choices) { return refusal([&] { import_file(file, choices, ""); }); };
  EXPECT_EQ(
      refused({.tensor = 3}),
      "config.json:1:1: --devices and --workers: 8 devices cannot be divided into groups of tensor 3 x pipeline 1 x "
      "context 1");
  EXPECT_EQ(refused({.batch = 12, .tensor = 1}),
            "config.json:1:1: --batch: 12 is no multiple of 8 replicas x micro-batches of 1");
  EXPECT_THAT(refused({.strategy = "mirrored", .tensor = 2}), HasSubstr("are for --strategy mesh, found mirrored"));
  EXPECT_THAT(refused({.devices = 1, .tensor = 1 << 16, .pipeline = 1 << 16}),
              HasSubstr("cannot be divided into groups of tensor 65536 x pipeline 65536 x context 1"));
  EXPECT_EQ(refused({.pipeline = 4}), "config.json:1:1: --pipeline: the model has 2 blocks for 4 stages");
}

TEST_F(HuggingFaceScenarios, BlocksThatDoNotDivideMakeUnequalStages) {
  std::string config = kSmall;
  config.replace(config.find("\"num_hidden_layers\": 2"), 22, "\"num_hidden_layers\": 6");
  const auto file = write("config.json", config);
  const Imported imported = import_file(file, {.pipeline = 4}, "");
  EXPECT_EQ(parse_scenario(imported.scenario, file.string()).strategy.mesh.stage_blocks, (std::vector{1, 2, 2, 1}));
  EXPECT_THAT(imported.assumed, testing::Contains(HasSubstr("(strategy.stage_blocks)")));
}

TEST_F(HuggingFaceScenarios, ReportsRepeatWhatWasAssumed) {
  const auto file = write("config.json", kSmall);
  const Scenario scenario = parse_scenario(import_file(file, {.batch = 16}, "").scenario, file.string());
  EXPECT_THAT(scenario.notes, testing::Contains("assumed: machine hgx-h100 (--topology)"));
}

}  // namespace
}  // namespace tandem
