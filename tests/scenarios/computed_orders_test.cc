// Every order of a pipeline's passes with layers that are really computed: whatever runs when, the losses and the
// parameters are those of one forward, one backward and of one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/engine.h"
#include "scenarios/job/parallel_settings.h"
#include "scenarios/workloads/trainable.h"
#include "strategies/parallel/division.h"
#include "strategies/strategies.h"
#include "tests/scenarios/computed_ways.h"

namespace tandem {
namespace {

constexpr const char* kGptInOrders = "gpt_tiny, sizes: {layers: 4, hidden: 32, tokens: 16}";
constexpr const char* kDeepGpt = "gpt_tiny, sizes: {layers: 8, hidden: 16, tokens: 16}";
constexpr const char* kExpertsInOrders = "moe_tiny, sizes: {layers: 4, hidden: 32, tokens: 16}";
const std::vector<std::string> kOrders{"zero_bubble", "zero_bubble_h2", "zero_bubble_v", "dualpipe_v", "dualpipe"};

class ComputedOrders : public testing::TestWithParam<Way> {};

Way in_order(Way way, const std::string& order) {
  way.strategy += ", schedule: " + order;
  return way;
}

TEST_P(ComputedOrders, LearnWhatOneDeviceLearns) {
  for (const std::string& order : kOrders) {
    SCOPED_TRACE(order);
    const char* const model = GetParam().name.starts_with("experts")        ? kExpertsInOrders
                              : GetParam().name.starts_with("four_devices") ? kDeepGpt
                                                                            : kGptInOrders;
    expect_same_losses(model, in_order(GetParam(), order), kThreads);
    expect_same_losses(model, in_order(GetParam(), order), kSimulated);
  }
}

// The fewest micro-batches that DualPipe takes on two devices.
INSTANTIATE_TEST_SUITE_P(
    Ways, ComputedOrders,
    testing::Values(
        Way{"pipeline", "name: pipeline_parallel, micro_batches: 4", 2},
        Way{"four_devices", "name: pipeline_parallel, micro_batches: 8", 4},
        Way{"again", "name: mesh, data: 2, pipeline: 2, micro_batches: 4", 4, ", activation_checkpointing: true"},
        Way{"parts_again", "name: pipeline_parallel, micro_batches: 4", 2,
            ", activation_checkpointing: {modules: [core_attn, mlp]}"},
        Way{"tensor", "name: mesh, tensor: 2, pipeline: 2, micro_batches: 4"},
        Way{"rows", "name: mesh, tensor: 2, pipeline: 2, micro_batches: 4", 4, ", sequence_parallel: true"},
        Way{"rows_in_turn", "name: mesh, tensor: 2, pipeline: 2, micro_batches: 4", 4,
            ", sequence_parallel: true, overlap_tensor: false"},
        Way{"divided_state",
            "name: mesh, data: 2, pipeline: 2, micro_batches: 4, distributed_optimizer: true, overlap_gather: true"},
        Way{"divided_state_after_the_passes",
            "name: mesh, data: 2, pipeline: 2, micro_batches: 4, distributed_optimizer: true", 4, ", overlap: false"},
        Way{"context", "name: mesh, context: 2, pipeline: 2, micro_batches: 4"},
        Way{"ring_and_rows", "name: mesh, tensor: 2, context: 2, pipeline: 2, micro_batches: 4, context_exchange: ring",
            8, ", sequence_parallel: true"},
        Way{"heads_again", "name: mesh, context: 2, pipeline: 2, micro_batches: 4, context_exchange: all_to_all", 4,
            ", activation_checkpointing: {modules: [core_attn]}"},
        Way{"dropout", "name: mesh, data: 2, pipeline: 2, micro_batches: 4", 4, ", dropout: 0.25"},
        Way{"experts", "name: mesh, data: 2, expert: 2, pipeline: 2, micro_batches: 4"},
        Way{"experts_and_rows", "name: mesh, data: 2, expert: 2, tensor: 2, pipeline: 2, micro_batches: 4", 8,
            ", sequence_parallel: true, activation_checkpointing: true"}),
    [](const auto& instance) { return instance.param.name; });

// Parameters in pieces are for models whose two ends have no table in common.
class ComputedOrdersOfPieces : public testing::TestWithParam<Way> {};

TEST_P(ComputedOrdersOfPieces, LearnWhatOneDeviceLearns) {
  const std::string folder = TANDEM_SOURCE_DIR "/tests/scenarios/good/files/";
  const bool has_experts = GetParam().name.starts_with("experts");
  for (const std::string& order : kOrders) {
    SCOPED_TRACE(order);
    Way way = in_order(GetParam(), order);
    way.strategy += ", shard_parameters: true";
    if (order.ends_with("_v")) way.strategy += ", stage_blocks: [0, 1, 1, 0]";
    for (const char* const engine : {kThreads, kSimulated}) {
      expect_same_losses(folder + (has_experts ? "mixture_tiny.yaml" : "llama_tiny.yaml"), way, engine);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ComputedOrdersOfPieces,
    testing::Values(
        Way{"replicas", "name: mesh, data: 2, pipeline: 2, micro_batches: 4"},
        Way{"again", "name: mesh, data: 2, pipeline: 2, micro_batches: 4", 4, ", activation_checkpointing: true"},
        Way{"rows", "name: mesh, data: 2, tensor: 2, pipeline: 2, micro_batches: 4", 8, ", sequence_parallel: true"},
        Way{"sequences", "name: mesh, context: 2, pipeline: 2, micro_batches: 4"},
        Way{"groups", "name: mesh, data: 2, pipeline: 2, micro_batches: 4, replicate: 2"},
        Way{"experts", "name: mesh, data: 2, expert: 2, pipeline: 2, micro_batches: 4"}),
    [](const auto& instance) { return instance.param.name; });

TEST(ComputedOrdersOfChunks, LearnWhatOneDeviceLearns) {
  for (const char* const more : {"", ", activation_checkpointing: true"}) {
    const Way way{"interleaved", "name: pipeline_parallel, micro_batches: 4, virtual_stages: 2, schedule: zero_bubble",
                  2, more};
    expect_same_losses(kGptInOrders, way, kThreads);
    expect_same_losses(kGptInOrders, way, kSimulated);
  }
}

// Returns the weights and biases of the blocks' layers after three steps.
std::vector<float> learned(const Way& way) {
  const Scenario scenario = parse_scenario(text_of(kGptInOrders, way, kThreads), "learned.yaml");
  EngineOptions engine;
  engine.workers = {WorkerSpec{.device_count = way.devices}};
  std::vector<float> all;
  open_engine("cpu", engine)->run([&](Worker& worker) {
    const std::unique_ptr<TrainableModel> model = trainable_model(scenario.workload, worker);
    const Division& division = *strategy_info(scenario.strategy.name).division->how;
    const auto training = division.train(worker, *model, parallel_options(scenario));
    for (int step = 0; step < 3; ++step) training->run_step(step);
    const std::vector<Layer>& layers = model->model().layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (!layers[i].has_weights() || layers[i].shared_weights) continue;
      const auto [weights, bias] = training->read_layer(i);
      worker.cpu().compute_stream().synchronize();
      for (const Tensor& tensor : std::array{weights, bias}) {
        const auto values = tensor.values<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
    }
  });
  return all;
}

double most_apart(const std::vector<float>& some, const std::vector<float>& others) {
  EXPECT_EQ(some.size(), others.size());
  double largest = 0;
  for (std::size_t i = 0; i < some.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(some[i]) - static_cast<double>(others[i])));
  }
  return largest;
}

// Where a device has the same stage, every sum has the same order, too. Elsewhere the table's gradients are added up in
// another one. A step changes weights by about 1e-3.
TEST(ComputedOrdersOfPasses, LearnTheSameParametersAsOneForwardOneBackward) {
  constexpr double kRounding = 1e-7;
  for (const char* const again : {"", ", activation_checkpointing: true"}) {
    const auto learned_in = [&](const std::string& order) {
      return learned({order, "name: pipeline_parallel, micro_batches: 4, schedule: " + order, 2, again});
    };
    const std::vector<float> usual = learned_in("1f1b");
    ASSERT_EQ(usual.size(), 4u * (4 * 32 * 32 + 2 * 4 * 32 * 32 + 3 * 32 + 32 + 4 * 32 + 32));
    EXPECT_LT(most_apart(learned({"one", "name: mesh", 1}), usual), kRounding);
    EXPECT_GT(most_apart(learned({"one", "name: mesh", 1, ", seed: 2"}), usual), 1e-2);
    EXPECT_EQ(learned_in("zero_bubble"), usual);
    EXPECT_EQ(learned_in("zero_bubble_h2"), usual);
    for (const char* const order : {"zero_bubble_v", "dualpipe_v", "dualpipe"}) {
      EXPECT_LT(most_apart(learned_in(order), usual), kRounding) << order;
    }
  }
}

// What is computed again has the values that it had.
TEST(ComputedOrdersOfPasses, LearnTheSameWhereAttentionIsComputedAgain) {
  for (const char* const order : {"1f1b", "zero_bubble", "zero_bubble_v"}) {
    const std::string strategy = std::string("name: pipeline_parallel, micro_batches: 4, schedule: ") + order;
    const std::vector<float> kept = learned({"kept", strategy, 2});
    EXPECT_EQ(learned({"again", strategy, 2, ", activation_checkpointing: {modules: [core_attn]}"}), kept) << order;
    EXPECT_EQ(learned({"again", strategy, 2, ", activation_checkpointing: {modules: [core_attn, mlp]}"}), kept)
        << order;
  }
}

TEST(ComputedOrdersOfPasses, GoWithPerceptrons) {
  const auto losses = [](const std::string& strategy, int devices) {
    const Scenario scenario = parse_scenario(
        "schema_version: 1\nworkload: {kind: mlp, hidden: [64, 48, 32], batch: 61, momentum: 0.9}\nstrategy: {name: " +
            strategy + "}\ndevices: {per_worker: " + std::to_string(devices) + "}\nengine: {name: cpu}\nsteps: 5\n",
        "perceptron.yaml");
    return run_scenario(scenario, {.measures_scaling = false}).report;
  };
  const Report one = losses("one_device", 1);
  for (const std::string& order : kOrders) {
    const Report report = losses("pipeline_parallel, micro_batches: 4, schedule: " + order, 2);
    ASSERT_EQ(report.loss.size(), one.loss.size());
    for (std::size_t step = 0; step < one.loss.size(); ++step) {
      EXPECT_NEAR(report.loss[step] / one.loss[step], 1, 1e-5) << order << ", step " << step;
    }
    EXPECT_EQ(report.metrics.at("test_accuracy"), one.metrics.at("test_accuracy")) << order;
  }
}

// Tasks that are ready at one instant run in many orders, and nobody waits for ever.
TEST(ComputedOrdersOfPasses, LearnTheSameInAnyOrderOfTasks) {
  for (const std::string& order : kOrders) {
    const Way way = in_order({"any", "name: mesh, data: 2, pipeline: 2, micro_batches: 4"}, order);
    const Scenario scenario = parse_scenario(text_of(kGptInOrders, way, kSimulated), "any.yaml");
    const std::vector<double> usual = run_scenario(scenario, {.measures_scaling = false}).report.loss;
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      EXPECT_EQ(run_scenario(scenario, {.schedule_seed = seed, .measures_scaling = false}).report.loss, usual) << order;
    }
  }
}

}  // namespace
}  // namespace tandem
