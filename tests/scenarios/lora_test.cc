// Frozen models with low-rank adapters (LoRA): parameters, kernels, exchanges and memory, against formulas.
#include "strategies/model/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "scenarios/estimates/device_memory.h"
#include "scenarios/job/job.h"
#include "scenarios/workloads/activations.h"
#include "scenarios/workloads/layer_kernels.h"
#include "strategies/parallel/layout/layer_division.h"
#include "strategies/parallel/stages/layer_exchanges.h"
#include "tests/scenarios/running.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

constexpr std::int64_t kLoraTokens = 256, kLoraHidden = 512, kLoraKeys = 128, kLoraWidth = 1024, kLoraLayers = 2,
                       kLoraRank = 8;

constexpr const char* kLoraJob = R"(
name: lora
workload:
  kind: layers
  model: llama
  sizes: {tokens: 256, hidden: 512, heads: 8, key_heads: 2, intermediate: 1024, layers: 2, vocabulary: 2048}
  batch: 8
  dtype: bf16
  optimizer: adam
  lora: {rank: 8, layers: [query, attention_output, up]}
engine: {name: sim}
topology: hgx-h100
steps: 2
warmup_steps: 1
)";

Scenario lora_job(const std::string& strategy, int devices, bool is_frozen = true) {
  std::string text = kLoraJob;
  if (!is_frozen) text.erase(text.find("  lora:"), text.find("engine:") - text.find("  lora:"));
  return read_scenario(text + "strategy: " + strategy +
                       "\ndevices: {type: gpu, per_worker: " + std::to_string(devices) + "}\n");
}

Model lora_llama() {
  return std::get<LayersSettings>(lora_job("{name: one_device}", 1, false).workload.kind).model;
}

Model adapted(const std::vector<std::vector<std::string>>& names) {
  Model model = lora_llama();
  freeze(model);
  for (const auto& together : names) EXPECT_EQ(add_adapters(together, kLoraRank, model), std::nullopt);
  return model;
}

const Layer& lora_layer(const Model& model, const std::string& name) {
  return *std::ranges::find(model.layers, name, &Layer::name);
}

// The bytes of all collectives with this operation in a step, as buffers of one rank.
double lora_bytes_of(const Report& report, const std::string& operation) {
  double bytes = 0;
  for (const CollectiveSummary& one : report.summary.collectives) {
    if (one.operation == operation) bytes += static_cast<double>(one.bytes) * one.calls_per_step;
  }
  return bytes;
}

TEST(Lora, AdaptersAreAllThatLearns) {
  const Model whole = lora_llama(), model = adapted({{"query"}, {"attention_output"}, {"up"}});
  EXPECT_EQ(model.frozen_parameters(), whole.parameters());
  EXPECT_EQ(model.parameters(),
            kLoraLayers * kLoraRank * (2 * kLoraHidden + 2 * kLoraHidden + kLoraHidden + kLoraWidth));
  EXPECT_EQ(lora_layer(model, "block.0.query").weights(), kLoraHidden * kLoraHidden);
  EXPECT_EQ(lora_layer(model, "block.0.key").parameters(), 0);
  EXPECT_EQ(down_adapter(lora_layer(model, "block.1.up")).forward_macs(), kLoraTokens * kLoraHidden * kLoraRank);
  EXPECT_EQ(up_adapter(lora_layer(model, "block.1.up")).forward_macs(), kLoraTokens * kLoraRank * kLoraWidth);
}

// As Megatron's linear_qkv: one A for the three products.
TEST(Lora, NeighboursMayHaveTheirFirstMatrixTogether) {
  const Model model = adapted({{"query", "key", "value"}});
  EXPECT_EQ(model.parameters(), kLoraLayers * kLoraRank * (kLoraHidden + kLoraHidden + 2 * kLoraKeys));
  Model wrong = lora_llama();
  freeze(wrong);
  const std::array<std::string, 2> apart{"query", "value"};
  EXPECT_EQ(*add_adapters(apart, kLoraRank, wrong),
            "'value' does not follow 'query' as a layer split by columns that reads the same input");
}

// Llama 2 70B as in MLPerf Training: rank 16 beside the products of attention.
TEST(Lora, TheRecipeHasTheParametersOfMlperf) {
  const Scenario scenario = load_scenario(find_data("scenarios/examples/recipes/llama2-70b-lora-8-h100.yaml"));
  const Model& model = std::get<LayersSettings>(scenario.workload.kind).model;
  EXPECT_EQ(model.frozen_parameters(), 68'976'648'192);
  EXPECT_EQ(model.parameters(), 80 * 16 * (8192 + 8192 + 2 * 1024 + 8192 + 8192));
}

TEST(Lora, GradientsAreNeededDownToTheFirstAdapter) {
  const Model model = adapted({{"attention_output"}});
  const auto index_of = [&](const std::string& name) {
    return static_cast<std::size_t>(&lora_layer(model, name) - model.layers.data());
  };
  EXPECT_FALSE(learns_until(model.layers, index_of("embeddings")));
  EXPECT_FALSE(learns_until(model.layers, index_of("block.0.context")));
  EXPECT_TRUE(learns_until(model.layers, index_of("block.0.attention_output")));
  EXPECT_FALSE(has_parameters_before(model.layers, index_of("block.0.attention_output")));
  EXPECT_TRUE(has_parameters_before(model.layers, index_of("block.0.gate")));
  // What reads the same input needs no gradient of it, wherever among them the adapter is.
  const Model first = adapted({{"query"}});
  EXPECT_FALSE(has_parameters_before(first.layers, index_of("block.0.value")));
}

TEST(Lora, TensorParallelDevicesDivideOneMatrixOfEachPair) {
  const Model model = adapted({{"query"}, {"attention_output"}});
  const Layer query = layer_part(lora_layer(model, "block.0.query"), 4, 1);
  EXPECT_EQ(query.tensors, (std::vector<std::int64_t>{kLoraRank * kLoraHidden / 4, kLoraHidden * kLoraRank}));
  EXPECT_EQ(query.frozen, std::vector<std::int64_t>{kLoraHidden * kLoraHidden / 4});
  EXPECT_EQ(summed_adapter_parameters(query, false), kLoraHidden * kLoraRank);
  const Layer output = layer_part(lora_layer(model, "block.0.attention_output"), 4, 1);
  EXPECT_EQ(output.tensors, (std::vector<std::int64_t>{kLoraHidden / 4 * kLoraRank, kLoraRank * kLoraHidden}));
  EXPECT_EQ(output.frozen, (std::vector<std::int64_t>{kLoraHidden * kLoraHidden / 4, kLoraHidden}));
  EXPECT_EQ(summed_adapter_parameters(output, true), kLoraRank * kLoraHidden);
}

// A frozen product has the gradient of its input only; an adapter has all of its own.
TEST(Lora, ProductsOfWeightsHaveNoGradients) {
  const Model model = adapted({{"query"}, {"attention_output"}, {"up"}});
  const LayerKernels kernels({}, DType::bf16, 1);
  const auto parts = [](const std::vector<LayerKernel>& some) {
    std::vector<LayerKernel::Part> found;
    for (const LayerKernel& kernel : some) found.push_back(kernel.part);
    return found;
  };
  EXPECT_THAT(parts(kernels.backward(lora_layer(model, "block.1.down"), true)),
              testing::AllOf(testing::Contains(LayerKernel::Part::input_gradient),
                             testing::Not(testing::Contains(LayerKernel::Part::weight_gradient))));
  EXPECT_THAT(parts(kernels.backward(lora_layer(model, "block.1.context"), true)),
              testing::Contains(LayerKernel::Part::weight_gradient))
      << "of the values";
  EXPECT_THAT(parts(kernels.backward(lora_layer(model, "embeddings"), false)),
              testing::Not(testing::Contains(LayerKernel::Part::table_gradient)));
  EXPECT_EQ(parts(kernels.adapter_forward(lora_layer(model, "block.1.up"), 1)),
            (std::vector{LayerKernel::Part::product, LayerKernel::Part::product, LayerKernel::Part::memory}));
  const Layer& up = lora_layer(model, "block.1.up");
  EXPECT_EQ(parts(kernels.adapter_weights(up, 1, false)),
            (std::vector{LayerKernel::Part::weight_gradient, LayerKernel::Part::input_gradient,
                         LayerKernel::Part::weight_gradient}));
  EXPECT_EQ(parts(kernels.adapter_weights(up, 1, true)),
            (std::vector{LayerKernel::Part::weight_gradient, LayerKernel::Part::weight_gradient}))
      << "what goes back may not wait for gradients of weights";
  EXPECT_EQ(
      parts(kernels.adapter_input(up, 1)),
      (std::vector{LayerKernel::Part::input_gradient, LayerKernel::Part::input_gradient, LayerKernel::Part::memory}));
  EXPECT_TRUE(kernels.adapter_forward(lora_layer(model, "block.1.down"), 1).empty());
}

// All products of a step: three for each one of an adapter; of a frozen one those forward and of the input's gradient,
// which the first block's products that read the embeddings do not need.
TEST(Lora, AStepHasTheFlopsOfItsProducts) {
  const auto flops_of = [](const Scenario& scenario) {
    const RunResult result = run_scenario(scenario, {.measures_scaling = false});
    double flops = 0;
    for (const Record& record : result.timeline.records) {
      const bool is_product =
          record.category == Category::compute && record.name.text().find("adapter") == std::string::npos;
      if (record.step == 1 && is_product && record.flops > 2.0 * kLoraRank * kLoraTokens) flops += record.flops;
    }
    return flops;
  };
  const double whole = flops_of(lora_job("{name: one_device}", 1, false)),
               frozen = flops_of(lora_job("{name: one_device}", 1));
  const Model model = adapted({{"query"}, {"attention_output"}, {"up"}});
  double weights = 0, adapters = 0;
  for (const Layer& layer : model.layers) {
    if (layer.gemm && !layer.gemm->batched) weights += static_cast<double>(layer.forward_macs());
    if (layer.adapter_rank == 0) continue;
    adapters += 3 * static_cast<double>(down_adapter(layer).forward_macs() + up_adapter(layer).forward_macs());
  }
  const double first =
      static_cast<double>(kLoraTokens) * kLoraHidden * (kLoraHidden + 2 * kLoraKeys);  // query, key and value
  adapters -= static_cast<double>(kLoraTokens) * kLoraHidden * kLoraRank;              // the first query's
  constexpr double kFlopsOfMac = 2, kBatch = 8;
  EXPECT_NEAR(whole - frozen, kFlopsOfMac * kBatch * (weights + first - adapters), 1e-3 * (whole - frozen))
      << "memory traffic counts a flop an element";
}

// Only the gradients of adapters are summed.
TEST(Lora, ReplicasSumTheGradientsOfAdapters) {
  const double learning = static_cast<double>(adapted({{"query"}, {"attention_output"}, {"up"}}).parameters());
  EXPECT_EQ(lora_bytes_of(run_unscaled(lora_job("{name: mirrored}", 8)), "all_reduce"), 2 * learning);
  EXPECT_EQ(lora_bytes_of(run_unscaled(lora_job("{name: mesh, data: 8}", 8)), "all_reduce"), 2 * learning);
}

// With tensor-parallel devices, the gradients of the matrix that all of them have are summed over them, too: one call
// in each of the two replicas.
TEST(Lora, TensorParallelDevicesSumTheGradientsOfWholeMatrices) {
  const Report report = run_unscaled(lora_job("{name: mesh, data: 2, tensor: 4, micro_batches: 4}", 8));
  const std::int64_t summed = kLoraLayers * kLoraRank * (kLoraHidden + kLoraHidden + kLoraHidden);
  EXPECT_THAT(report.summary.collectives,
              testing::Contains(testing::AllOf(testing::Field(&CollectiveSummary::operation, "all_reduce"),
                                               testing::Field(&CollectiveSummary::bytes, 2 * summed),
                                               testing::Field(&CollectiveSummary::devices, 4),
                                               testing::Field(&CollectiveSummary::calls_per_step, 2))));
}

// Pieces of frozen parameters are gathered forward and backward, and have no gradients.
TEST(Lora, ShardedParametersAreGatheredButOnlyAdaptersAreReduced) {
  const Model model = adapted({{"query"}, {"attention_output"}, {"up"}});
  const Report report = run_unscaled(lora_job("{name: fully_sharded}", 8));
  const double learning = static_cast<double>(model.parameters()),
               all = learning + static_cast<double>(model.frozen_parameters());
  EXPECT_NEAR(lora_bytes_of(report, "reduce_scatter"), 2 * learning, 2 * 8 * 10);
  EXPECT_GE(lora_bytes_of(report, "all_gather"), 2 * all);
  EXPECT_LE(lora_bytes_of(report, "all_gather"), 2 * 2 * all + 1000);
}

TEST(Lora, MemoryHasNoGradientsAndStateOfFrozenParameters) {
  const Model model = adapted({{"query"}, {"attention_output"}, {"up"}});
  const Scenario one = lora_job("{name: one_device}", 1), eight = lora_job("{name: fully_sharded}", 8);
  const auto need = memory_need(job_of(one)), divided = memory_need(job_of(eight));
  ASSERT_TRUE(need.has_value());
  EXPECT_EQ(need->parameters, 2 * (model.frozen_parameters() + model.parameters()));
  EXPECT_EQ(need->gradients, 2 * model.parameters());
  EXPECT_EQ(need->optimizer, 12 * model.parameters());
  EXPECT_NEAR(static_cast<double>(divided->parameters), static_cast<double>(need->parameters) / 8, 8);
}

// An adapter keeps its input, once for neighbours that read the same, and the result of its first product.
TEST(Lora, InputsOfFrozenProductsAreNotKept) {
  const ActivationSettings settings{.examples = 1, .dtype = DType::bf16, .keeps_scores = false};
  const auto bytes_with = [&](const std::vector<std::vector<std::string>>& names) {
    return activation_bytes(adapted(names).layers, settings);
  };
  const std::int64_t of_input = 2 * kLoraLayers * kLoraTokens * kLoraHidden,
                     of_rank = 2 * kLoraLayers * kLoraTokens * kLoraRank;
  const std::int64_t none = bytes_with({});
  EXPECT_EQ(bytes_with({{"query"}}) - none, of_input + of_rank);
  EXPECT_EQ(bytes_with({{"query"}, {"value"}}) - none, of_input + 2 * of_rank);
  EXPECT_EQ(bytes_with({{"query", "key", "value"}}) - none, of_input + of_rank);
  const std::int64_t whole = activation_bytes(lora_llama().layers, settings);
  // The inputs of the three groups of products of hidden size, of `down`, and of the head.
  EXPECT_EQ(whole - none, 3 * of_input + 2 * kLoraLayers * kLoraTokens * kLoraWidth + 2 * kLoraTokens * kLoraHidden);
}

TEST(Lora, QuantisedWeightsThatAreFrozenAreNotQuantisedInEveryStep) {
  Scenario scenario = lora_job("{name: one_device}", 1);
  std::get<LayersSettings>(scenario.workload.kind).quantised = Quantised::fp8;
  const RunResult result = run_scenario(scenario, {.measures_scaling = false});
  const auto is_named = [&](const std::string& end) {
    return std::ranges::any_of(result.timeline.records,
                               [&](const Record& record) { return record.name.text().ends_with(end); });
  };
  EXPECT_TRUE(is_named("block.0.down quantise"));
  EXPECT_FALSE(is_named(" quantise weights"));
}

}  // namespace
}  // namespace tandem
