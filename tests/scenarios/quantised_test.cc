// Products whose operands are quantised: their time, their memory, and what refuses them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scenarios/model/model_reader.h"
#include "scenarios/workloads/activations.h"
#include "tests/scenarios/running.h"
#include "topologies/base/error.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

using testing::HasSubstr;

const std::string kLlama = "workload: {kind: layers, model: llama, sizes: {layers: 4, tokens: 4096}, batch: 8, dtype: ";

std::string scenario_text(const std::string& workload, const std::string& machine) {
  return workload + "}\nstrategy: {name: fully_sharded}\nengine: {name: sim}\ntopology: " + machine +
         "\ndevices: {type: gpu, per_worker: 8}\nsteps: 3\nwarmup_steps: 1\n";
}

double step_s(const std::string& precision, const std::string& machine) {
  const Report report = run_unscaled(read_scenario(scenario_text(kLlama + "bf16" + precision, machine)));
  return static_cast<double>(report.summary.step_time.mean) * 1e-9;
}

std::string refusal(const std::string& workload, const std::string& machine) {
  try {
    run_unscaled(read_scenario(scenario_text(workload, machine)));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Products gain 2 x 0.75 / 0.95, less what it takes to quantise; attention, norms and the loss gain nothing.
TEST(Quantised, ProductsAreFasterButNotTwice) {
  const double gain = step_s("", "hgx-h100") / step_s(", precision: {compute: fp8}", "hgx-h100");
  EXPECT_GT(gain, 1.1);
  EXPECT_LT(gain, 1.58);
  const double of_fp8 = step_s(", precision: {compute: mxfp8}", "hgx-b200");
  EXPECT_GT(step_s("", "hgx-b200"), of_fp8);
  EXPECT_LT(step_s(", precision: {compute: nvfp4}", "hgx-b200"), of_fp8);
}

TEST(Quantised, ProductsNeedADeviceWithSuchARateAndOperandsOfTwoBytes) {
  EXPECT_THAT(refusal(kLlama + "bf16, precision: {compute: fp8}", "dgx-a100"),
              HasSubstr("device model 'NVIDIA A100 SXM4 80 GB' has no fp8 rate"));
  EXPECT_THAT(refusal(kLlama + "bf16, precision: {compute: nvfp4}", "hgx-h100"), HasSubstr("has no fp4 rate"));
  EXPECT_THAT(refusal(kLlama + "f32, precision: {compute: fp8}", "hgx-h100"),
              HasSubstr("is for a dtype of two bytes, whose operands are quantised; found dtype f32"));
  EXPECT_THAT(refusal("workload: {kind: layers, model: resnet50, batch: 64, dtype: bf16, precision: {compute: fp8}",
                      "hgx-h100"),
              HasSubstr("model 'resnet50' has no dense layers in groups that repeat"));
}

TEST(Quantised, RoutersAttentionAndTheLossAreNot) {
  const auto quantised = [](const std::string& model) {
    std::set<std::string> names;
    for (const Layer& layer : read_model(find_data("scenarios/models/" + model + ".yaml")).layers) {
      if (layer.can_be_quantised()) names.insert(layer.name.substr(layer.name.rfind('.') + 1));
    }
    return names;
  };
  EXPECT_EQ(quantised("llama"),
            (std::set<std::string>{"query", "key", "value", "attention_output", "gate", "up", "down"}));
  EXPECT_FALSE(quantised("moe_tiny").contains("router"));
  EXPECT_TRUE(quantised("resnet50").empty());
}

TEST(Quantised, InputsAreKeptInOneByte) {
  Layer layer;
  layer.name = "dense";
  layer.gemm = Layer::Gemm{.rows = 8, .columns = 4, .depth = 16, .input_elements = 8 * 16};
  layer.tensors = {4 * 16};
  layer.block = Layer::Block{.group = "block"};
  ActivationSettings settings{.examples = 3, .dtype = DType::bf16};
  EXPECT_EQ(activation_bytes({{layer}}, settings), 3 * 8 * 16 * 2);
  settings.quantised = Quantised::mxfp8;
  EXPECT_EQ(activation_bytes({{layer}}, settings), 3 * (8 * 16 + 8 * 16 / 32));
  settings.quantised = Quantised::nvfp4;
  EXPECT_EQ(activation_bytes({{layer}}, settings), 3 * (8 * 16 / 2 + 8 * 16 / 16));
  settings.quantised = Quantised::fp8;
  EXPECT_EQ(activation_bytes({{layer}}, settings), 3 * 8 * 16);
  settings.recipe = ScalingRecipe::blockwise;
  EXPECT_EQ(activation_bytes({{layer}}, settings), 3 * (8 * 16 + 4));
}

TEST(Quantised, ValuesAreKeptInTheirType) {
  LayersSettings layers;
  layers.quantised = Quantised::mxfp8;
  EXPECT_EQ(activation_settings(layers, 1).quantised, Quantised::mxfp8);
  layers.learning.emplace();
  EXPECT_EQ(activation_settings(layers, 1).quantised, Quantised::none);
}

// What a block's products of weights take in both passes, and what the kernels move that quantise their operands.
struct QuantisedBlocks {
  double products_s = 0, quantised_bytes = 0;
};

QuantisedBlocks quantised_blocks(const std::string& recipe, const std::string& machine) {
  const Scenario scenario = read_scenario(fmt::format(
      "workload: {{kind: layers, model: gpt, sizes: {{hidden: 4096, heads: 32, layers: 2, tokens: 512}}, batch: 31, "
      "stack: {{fusion: none}}, dtype: bf16, precision: {{compute: fp8, recipe: {}}}}}\nstrategy: {{name: "
      "one_device}}\n"
      "engine: {{name: sim}}\ntopology: {}\ndevices: {{type: gpu, per_worker: 1}}\nsteps: 2\nwarmup_steps: 1\n",
      recipe, machine));
  RunOptions options;
  options.measures_scaling = false;
  const RunResult result = run_scenario(scenario, options);
  QuantisedBlocks all;
  for (const Record& record : result.timeline.records) {
    const std::string name = record.name.text();
    if (!name.starts_with("block.")) continue;
    if (name.find("quantise") != std::string::npos) all.quantised_bytes += record.bytes;
    const bool is_attention = name.find("scores") != std::string::npos || name.find("context") != std::string::npos;
    if (record.flops > 1e11 && !is_attention)
      all.products_s += static_cast<double>(record.end_ns - record.start_ns) * 1e-9;
  }
  return all;
}

// Bytes of an element: two reads and two copies with a scale for each tensor, of which the model counts 4.
TEST(Quantised, RecipesMoveAsManyBytesAsTheirScalesNeed) {
  const double tensorwise = quantised_blocks("tensorwise", "hgx-h200").quantised_bytes;
  const auto share = [&](const std::string& recipe) {
    return quantised_blocks(recipe, "hgx-h200").quantised_bytes / tensorwise;
  };
  EXPECT_NEAR(share("delayed"), 4.0 / 6, 1e-6);
  EXPECT_NEAR(share("rowwise"), 8.0 / 6, 1e-6);
  EXPECT_NEAR(share("blockwise"), (4 + 2 * 4.0 / 128) / 6, 1e-6);
}

// Blackwell computes blocks' scales as those of mxfp8: their products lose nothing.
TEST(Quantised, ProductsWithScalesOfBlocksAreSlowerBeforeBlackwellOnly) {
  const auto slower = [](const std::string& recipe, const std::string& machine) {
    return quantised_blocks(recipe, machine).products_s / quantised_blocks("tensorwise", machine).products_s;
  };
  EXPECT_NEAR(slower("blockwise", "hgx-h100"), 1 / 0.82, 0.02);
  EXPECT_NEAR(slower("blockwise", "hgx-b200"), 1, 1e-5);
  EXPECT_NEAR(slower("delayed", "hgx-h100"), 1, 1e-5);
  EXPECT_NEAR(slower("rowwise", "hgx-h100"), 1, 1e-5);
}

// Three of eight devices have an example; the others' operands have no memory that weights could be quantised in.
TEST(Quantised, DevicesWithoutExamplesQuantiseNothing) {
  const RunResult result = run_scenario(
      read_scenario("workload: {kind: layers, model: gpt_tiny, batch: 3, dtype: bf16, precision: {compute: fp8}}\n"
                    "strategy: {name: parameter_server}\nengine: {name: sim}\ntopology: hgx-h100\n"
                    "devices: {type: gpu, per_worker: 8}\nsteps: 2\n"));
  std::map<int, int> by_device;
  for (const Record& record : result.timeline.records) {
    if (record.name.text().find("quantise weights") != std::string::npos) ++by_device[record.device];
  }
  EXPECT_EQ(by_device.size(), 3U);
  for (const auto& [device, count] : by_device) EXPECT_EQ(count % 2, 0) << device << ": as many in both steps";
}

// Layers of blocks have one byte for each parameter on their way, others two.
TEST(Quantised, ParametersThatAreGatheredAsBytesAreHalfAsMany) {
  const auto gathered = [](const char* strategy, const char* gather) {
    const Report report = run_unscaled(read_scenario(fmt::format(
        "workload: {{kind: layers, model: llama, sizes: {{layers: 4}}, batch: 8, dtype: bf16, parameter_dtype: f32, "
        "bucket_bytes: 1MB, precision: {{compute: fp8, gather: {}}}}}\nstrategy: {{name: mesh, data: 8, {}: true}}\n"
        "engine: {{name: sim}}\ntopology: hgx-h200\ndevices: {{per_worker: 8}}\nsteps: 2\nwarmup_steps: 1\n",
        gather, strategy)));
    double bytes = 0;
    for (const CollectiveSummary& one : report.summary.collectives) {
      if (one.operation == "all_gather") bytes += static_cast<double>(one.calls_per_step) * one.bytes;
    }
    return bytes;
  };
  constexpr double kOfBlocks = 4 * 218'112'000.0, kOthers = 2 * 128'256.0 * 4096;
  const double once = 2 * (kOfBlocks + kOthers);
  EXPECT_NEAR(gathered("distributed_optimizer", "dtype"), once, 1e-4 * once);
  EXPECT_NEAR(gathered("distributed_optimizer", "fp8"), once - kOfBlocks, 1e-4 * once);
  EXPECT_NEAR(gathered("shard_parameters", "dtype") / gathered("shard_parameters", "fp8"), once / (once - kOfBlocks),
              0.05);
}

}  // namespace
}  // namespace tandem
