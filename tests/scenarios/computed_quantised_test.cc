// Layers that are really computed, with operands of eight and four bits: which numbers they have, and what that does to
// the loss, whatever divides the model.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/engine.h"
#include "engine/kernels/kernels.h"
#include "engine/layer_ops.h"
#include "scenarios/workloads/computed/quantised_operands.h"
#include "tests/scenarios/computed_ways.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using Operand = QuantisedOperands::Operand;
using Summed = QuantisedOperands::Summed;

const std::string kWithFp8 = ", precision: {compute: fp8, recipe: ";

struct Rounding {
  std::string name, keys;  // keys of the workload
  double difference;       // bounds that of losses from f32's in ten steps, as a share
};
void PrintTo(const Rounding& rounding, std::ostream* out) {
  *out << rounding.name;
}

const std::vector<Rounding> kRoundings{
    {"tensorwise", kWithFp8 + "tensorwise}", 1e-3},   {"rowwise", kWithFp8 + "rowwise}", 1e-3},
    {"blockwise", kWithFp8 + "blockwise}", 1e-3},     {"delayed", kWithFp8 + "delayed}", 5e-3},
    {"mxfp8", ", precision: {compute: mxfp8}", 1e-3}, {"nvfp4", ", precision: {compute: nvfp4}", 5e-3}};

std::vector<double> losses_of(const std::string& model, const Way& way, const std::string& keys,
                              const std::string& engine = kThreads) {
  RunOptions options;
  options.measures_scaling = false;
  const std::string text = fmt::format(
      "schema_version: 1\nworkload: {{kind: layers, model: {}, batch: 8, values: real, optimizer: adam, "
      "learning_rate: 0.002, bucket_bytes: 20kB{}{}}}\nstrategy: {{{}}}\ndevices: {{per_worker: {}{}\nsteps: 10\n",
      model, way.workload, keys, way.strategy, way.devices, engine);
  return run_scenario(parse_scenario(text, "way.yaml"), options).report.loss;
}

double largest_difference(const std::vector<double>& losses, const std::vector<double>& others) {
  double largest = 0;
  EXPECT_EQ(losses.size(), others.size());
  for (std::size_t i = 0; i < losses.size(); ++i) largest = std::max(largest, std::abs(losses[i] / others[i] - 1));
  return largest;
}

const Way kOneQuantised{"one", "name: one_device", 1};
constexpr const char* kQuantisedGpt = "gpt_tiny, sizes: {layers: 2, tokens: 32}";
constexpr const char* kQuantisedExperts = "moe_tiny, sizes: {layers: 2, tokens: 32}";

class QuantisedValues : public testing::TestWithParam<Rounding> {};
INSTANTIATE_TEST_SUITE_P(Roundings, QuantisedValues, testing::ValuesIn(kRoundings),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(QuantisedValues, ChangeTheLossALittle) {
  for (const char* model : {kQuantisedGpt, kQuantisedExperts}) {
    const std::vector<double> whole = losses_of(model, kOneQuantised, ""),
                              rounded = losses_of(model, kOneQuantised, GetParam().keys);
    EXPECT_GT(largest_difference(rounded, whole), 2e-5) << model;
    EXPECT_LT(largest_difference(rounded, whole), GetParam().difference) << model;
    EXPECT_LT(rounded.back(), rounded.front()) << model;
  }
}

TEST_P(QuantisedValues, AreTheSameOnSimulatedGpus) {
  const std::vector<double> simulated = losses_of(kQuantisedGpt, kOneQuantised, GetParam().keys, kSimulated);
  EXPECT_LT(largest_difference(simulated, losses_of(kQuantisedGpt, kOneQuantised, GetParam().keys)), 1e-7);
}

const std::vector<Way> kDividedWays{
    {"replicated", "name: mirrored", 2},
    {"sharded", "name: fully_sharded", 2},
    {"in_passes", "name: one_device", 1, ", gradient_accumulation_steps: 2"},
    {"tensor", "name: tensor_parallel", 2},
    {"sequence", "name: tensor_parallel", 2, ", sequence_parallel: true"},
    {"pipeline", "name: pipeline_parallel, micro_batches: 4", 2},
    {"again", "name: mirrored", 2, ", activation_checkpointing: true"},
    {"all", "name: mesh, data: 2, tensor: 2, pipeline: 2, micro_batches: 2, distributed_optimizer: true", 8,
     ", sequence_parallel: true"},
};

// Each device has the scale of its own part of a tensor, and each pass that of its rows: that changes losses by less
// than the format does.
TEST_P(QuantisedValues, DifferLittleWhereDevicesHavePartsOfTensors) {
  const std::vector<double> one = losses_of(kQuantisedGpt, kOneQuantised, GetParam().keys);
  const double of_format = largest_difference(one, losses_of(kQuantisedGpt, kOneQuantised, ""));
  for (const Way& way : kDividedWays) {
    EXPECT_LT(largest_difference(losses_of(kQuantisedGpt, way, GetParam().keys), one), of_format) << way.name;
  }
}

// Sums in another order may round a number to its other neighbour, up to an eighth of it away.
void expect_alike(const std::string& model, const std::vector<Way>& ways, const std::string& keys) {
  const std::vector<double> one = losses_of(model, kOneQuantised, keys);
  const double of_format = largest_difference(one, losses_of(model, kOneQuantised, ""));
  for (const Way& way : ways) {
    const std::vector<double> divided = losses_of(model, way, keys);
    EXPECT_NEAR(divided.front() / one.front(), 1, 1e-6) << way.name;
    EXPECT_LT(largest_difference(divided, one), of_format / 4) << way.name;
  }
}

// Blocks of 32 elements are the same, however a model is divided whose parts they divide.
TEST(QuantisedBlocks, AreTheSameOnAnyDevices) {
  expect_alike(kQuantisedGpt, kDividedWays, ", precision: {compute: mxfp8}");
}

TEST(QuantisedBlocks, OfExpertsAreTheSameOnAnyDevices) {
  expect_alike(kQuantisedExperts,
               {{"experts", "name: mesh, data: 2, expert: 2", 2}, {"tensor", "name: tensor_parallel", 2}},
               ", precision: {compute: mxfp8}");
}

// 256 columns and rows are two blocks of 128.
TEST(QuantisedBlocks, OfBlockwiseFp8AreTheSameOnAnyDevices) {
  expect_alike("gpt_tiny, sizes: {layers: 1, hidden: 256, tokens: 32}",
               {{"tensor", "name: tensor_parallel", 2},
                {"data", "name: mesh, data: 2", 2},
                {"sharded", "name: fully_sharded", 2}},
               kWithFp8 + "blockwise}");
}

// A stage with one layer of a model on the cpu engine.
class QuantisedStage {
 public:
  QuantisedStage(Worker& worker, const std::string& keys)
      : scenario_(parse_scenario("schema_version: 1\nworkload: {kind: layers, model: gpt_tiny, batch: 4, values: real" +
                                     keys + "}\nsteps: 1\n",
                                 "one.yaml")),
        layers_(std::get<LayersSettings>(scenario_.workload.kind)),
        flows_(flow_of(layers_.model)),
        device_(*worker.devices().front()),
        state_(layers_.model, layers_, learning_, flows_, {.end = layers_.model.layers.size()}, device_),
        operands_(state_, 1) {}

  std::vector<float> rounded(Operand operand, const Tensor& matrix, Summed summed, int step = 0) {
    state_.step = step;
    const Tensor result = operands_.rounded(operand, matrix, summed);
    device_.synchronize();
    const std::span<float> values = result.values<float>();
    return {values.begin(), values.end()};
  }
  Tensor matrix(Shape shape, const std::function<float(std::int64_t)>& value) {
    Tensor made = device_.allocate(DType::f32, shape);
    for (std::int64_t i = 0; i < shape.element_count(); ++i)
      made.values<float>()[static_cast<std::size_t>(i)] = value(i);
    return made;
  }

 private:
  Scenario scenario_;
  LayersSettings layers_;
  std::vector<LayerFlow> flows_;
  ComputedSettings learning_{};
  Device& device_;
  StageState state_;
  QuantisedOperands operands_;
};

void with_one_device(const std::function<void(Worker&)>& body) {
  open_engine("cpu", {})->run(body);
}

// The numbers of each operand, in each of its two products.
TEST(OperandsOfRecipes, HaveTheirFormatsAndScales) {
  using op::QuantiseSettings;
  constexpr SmallFloat kE4 = SmallFloat::e4m3, kE5 = SmallFloat::e5m2, kE2 = SmallFloat::e2m1;
  constexpr ScaleType kPower = ScaleType::e8m0, kTwo = ScaleType::e4m3;
  struct Expected {
    std::string keys;
    bool has_maximum;
    QuantiseSettings along_rows, along_columns, weights_along_rows, weights_along_columns, gradient;  // along columns
  };
  const std::vector<Expected> all{
      {kWithFp8 + "tensorwise}", true, {kE4}, {kE4}, {kE4}, {kE4}, {kE5}},
      {kWithFp8 + "rowwise}",
       false,
       {kE4, kPower, 0, 1},
       {kE4, kPower, 1, 0},
       {kE4, kPower, 0, 1},
       {kE4, kPower, 1, 0},
       {kE4, kPower, 1, 0}},
      {kWithFp8 + "blockwise}",
       false,
       {kE4, kPower, 128, 1},
       {kE4, kPower, 1, 128},
       {kE4, kPower, 128, 128},
       {kE4, kPower, 128, 128},
       {kE4, kPower, 1, 128}},
      {", precision: {compute: mxfp8}",
       false,
       {kE4, kPower, 32, 1},
       {kE4, kPower, 1, 32},
       {kE4, kPower, 32, 1},
       {kE4, kPower, 1, 32},
       {kE4, kPower, 1, 32}},
      {", precision: {compute: nvfp4}",
       true,
       {kE2, kTwo, 16, 1},
       {kE2, kTwo, 1, 16},
       {kE2, kTwo, 16, 16},
       {kE2, kTwo, 16, 16},
       {kE2, kTwo, 1, 16}},
  };
  with_one_device([&](Worker& worker) {
    for (const Expected& expected : all) {
      QuantisedStage stage(worker, expected.keys);
      const Tensor a = stage.matrix({300, 200}, [](std::int64_t i) {
        return std::ldexp(static_cast<float>(i * 7919 % 1009) / 1009 - 0.5F, static_cast<int>(i * 31 % 17) - 8);
      });
      const auto expect_same = [&](Operand operand, Summed summed, const QuantiseSettings& settings) {
        const Tensor to = worker.cpu().allocate(DType::f32, a.shape());
        const Tensor maximum = worker.cpu().allocate(DType::f32, {1});
        maximum.values<float>()[0] = 0;
        execute(op::raise_maximum(maximum, a).kernel);
        execute(op::quantise(to, a, settings, expected.has_maximum ? maximum : Tensor()).kernel);
        const std::span<float> values = to.values<float>();
        EXPECT_EQ(stage.rounded(operand, a, summed), std::vector<float>(values.begin(), values.end())) << expected.keys;
      };
      expect_same(Operand::input, Summed::rows, expected.along_rows);
      expect_same(Operand::input, Summed::columns, expected.along_columns);
      expect_same(Operand::weights, Summed::rows, expected.weights_along_rows);
      expect_same(Operand::weights, Summed::columns, expected.weights_along_columns);
      expect_same(Operand::gradient, Summed::columns, expected.gradient);
    }
  });
}

// e4m3 holds 448 / maximum of what it once was: the maximum of the last 1024 steps before this one.
TEST(OperandsOfRecipes, HaveScalesOfEarlierStepsIfTheyAreDelayed) {
  with_one_device([](Worker& worker) {
    QuantisedStage stage(worker, kWithFp8 + "delayed}");
    const auto saturated = [&](int step, float largest, Operand operand = Operand::input) {
      const Tensor a = stage.matrix({1, 2}, [&](std::int64_t i) { return i == 0 ? largest : 1e6F; });
      return stage.rounded(operand, a, Summed::columns, step)[0];
    };
    const auto in_step = [&](int step, float value) {
      const Tensor a = stage.matrix({1, 2}, [&](std::int64_t) { return value; });
      return stage.rounded(Operand::input, a, Summed::columns, step)[0];
    };
    EXPECT_FLOAT_EQ(in_step(0, 1000), 448) << "without a history the scale is 1";
    EXPECT_FLOAT_EQ(in_step(0, 7), 7) << "the same in all of a step";
    EXPECT_FLOAT_EQ(in_step(1, 2000), 1000) << "the maximum of the first step";
    EXPECT_FLOAT_EQ(in_step(2, 4000), 2000);
    EXPECT_FLOAT_EQ(in_step(4, 5000), 4000);
    EXPECT_FLOAT_EQ(in_step(1026, 8000), 5000) << "that of step 2 counts to step 1026";
    EXPECT_FLOAT_EQ(in_step(1027, 9000), 8000);
    EXPECT_FLOAT_EQ(saturated(0, 1e7F, Operand::gradient), 57344) << "each operand has its own history";
  });
}

std::string refusal_of_keys(const std::string& keys, const std::string& rest = "") {
  try {
    parse_scenario("schema_version: 1\nworkload: {kind: layers, batch: 8, " + keys + "}\nsteps: 1\n" + rest,
                   "refused.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(QuantisedValuesReader, SaysWhatDoesNotFit) {
  const std::string real = "model: gpt_tiny, values: real, ";
  EXPECT_EQ(refusal_of_keys(real + "precision: {compute: fp8}"), "");
  EXPECT_THAT(refusal_of_keys(real + "dtype: f64, precision: {compute: fp8}"),
              HasSubstr("workload.precision.compute: rounds values of f32 only; found dtype f64"));
  EXPECT_THAT(refusal_of_keys(real + "precision: {compute: mxfp8, recipe: rowwise}"),
              HasSubstr("workload.precision.recipe: is for compute: fp8; mxfp8 has a scale for every 32 elements"));
  EXPECT_THAT(refusal_of_keys("model: gpt_tiny, dtype: bf16, precision: {compute: nvfp4, recipe: tensorwise}"),
              HasSubstr("is for compute: fp8; nvfp4 has a scale for every 16 elements"));
  EXPECT_THAT(refusal_of_keys(real + "precision: {compute: fp8, gather: fp8}"),
              HasSubstr("is for layers that are not computed: real values are gathered in f32"));
  EXPECT_THAT(refusal_of_keys("model: llama, dtype: bf16, precision: {compute: fp8, recipe: rowwise, gather: fp8}"),
              HasSubstr("needs scales that do not depend on how a product reads weights; found recipe rowwise"));
  EXPECT_THAT(refusal_of_keys(real + "sizes: {hidden: 48}, precision: {compute: mxfp8}"),
              HasSubstr("blocks of 32 do not divide the 48 inputs of layer 'block.0.query_key_value'"));
  const std::string four = "strategy: {name: tensor_parallel}\ndevices: {per_worker: 4}\n";
  EXPECT_THAT(refusal_of_keys(real + "precision: {compute: mxfp8}", four),
              HasSubstr("strategy.tensor: 4 tensor-parallel devices have 48 outputs of layer 'block.0.query_key_value' "
                        "each, which blocks of 32 do not divide"));
  EXPECT_EQ(refusal_of_keys(real + "precision: {compute: nvfp4}", four), "");
}

// The rows of the table in docs/workloads.md: "| `tensorwise` | ... | 2.47 |".
std::map<std::string, double> losses_of_the_docs() {
  std::ifstream page(TANDEM_SOURCE_DIR "/docs/workloads.md");
  std::map<std::string, double> rows;
  bool is_inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ") || line.starts_with("### ")) is_inside = line == "### Values in eight and four bits";
    if (!is_inside || !line.starts_with("| `")) continue;
    const std::size_t end = line.find('`', 3), last = line.rfind('|', line.size() - 2);
    rows[line.substr(3, end - 3)] = std::stod(line.substr(last + 1));
  }
  return rows;
}

class QuantisedRowsOfTheDocs : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Rows, QuantisedRowsOfTheDocs,
                         testing::Values("f32", "tensorwise", "delayed", "rowwise", "blockwise", "mxfp8", "nvfp4"),
                         [](const auto& instance) { return instance.param; });

TEST_P(QuantisedRowsOfTheDocs, AreLossesOfTheExample) {
  const std::string name = GetParam();
  const std::map<std::string, double> rows = losses_of_the_docs();
  ASSERT_EQ(rows.size(), 7u);
  const bool is_recipe = name != "f32" && name != "mxfp8" && name != "nvfp4";
  const std::string precision = name == "f32" ? "~"
                                : is_recipe   ? fmt::format("{{compute: fp8, recipe: {}}}", name)
                                              : fmt::format("{{compute: {}}}", name);
  const Scenario scenario = load_scenario(TANDEM_SOURCE_DIR "/scenarios/examples/gpt-tiny-fp8.yaml",
                                          {{.name = "--set", .path = "workload.precision", .value = precision}});
  RunOptions options;
  options.measures_scaling = false;
  EXPECT_NEAR(run_scenario(scenario, options).report.loss.back(), rows.at(name), 0.02);
}

}  // namespace
}  // namespace tandem
