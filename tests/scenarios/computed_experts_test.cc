// Mixtures of experts that are really computed: whatever devices divide the experts, what is learned is the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "scenarios/model/model_reader.h"
#include "scenarios/workloads/computed/flow.h"
#include "strategies/parallel/layout/layer_division.h"
#include "tests/scenarios/computed_ways.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

using testing::HasSubstr;

constexpr const char* kMixture = "moe_tiny, sizes: {layers: 4, hidden: 32, tokens: 16}";
constexpr const char* kGated = TANDEM_SOURCE_DIR "/tests/scenarios/good/files/mixture_tiny.yaml";

class ComputedExperts : public testing::TestWithParam<Way> {};

TEST_P(ComputedExperts, LearnWhatOneDeviceLearns) {
  expect_same_losses(kMixture, GetParam(), kThreads);
}

TEST_P(ComputedExperts, LearnItOnSimulatedGpus) {
  expect_same_losses(kMixture, GetParam(), kSimulated);
}

const std::vector<Way> kExpertWays{
    {"replicated", "name: mirrored"},
    {"sharded", "name: fully_sharded"},
    {"sharded_again", "name: fully_sharded", 2, ", activation_checkpointing: true, gradient_accumulation_steps: 2"},
    {"data", "name: mesh, data: 4"},
    {"experts", "name: mesh, data: 4, expert: 4"},
    {"experts_twice", "name: mesh, data: 4, expert: 2"},
    {"experts_of_sequences", "name: mesh, context: 4, expert: 4"},
    {"experts_of_both", "name: mesh, data: 4, context: 2, expert: 4", 8},
    {"tensor", "name: tensor_parallel"},
    {"sequence", "name: tensor_parallel", 4, ", sequence_parallel: true"},
    {"sequence_in_turn", "name: tensor_parallel", 2, ", sequence_parallel: true, overlap_tensor: false"},
    {"experts_and_tensor", "name: mesh, data: 4, tensor: 2, expert: 2", 8},
    {"experts_and_sequence", "name: mesh, data: 2, tensor: 2, expert: 2", 4, ", sequence_parallel: true"},
    {"whole_experts", "name: mesh, data: 2, tensor: 2, expert: 4, expert_tensor: 1", 4, ", sequence_parallel: true"},
    {"whole_experts_twice", "name: mesh, data: 2, tensor: 2, expert: 2, expert_tensor: 1", 4,
     ", sequence_parallel: true"},
    {"whole_experts_of_all", "name: mesh, data: 2, tensor: 2, expert_tensor: 1", 4, ", sequence_parallel: true"},
    {"whole_experts_of_sequences",
     "name: mesh, context: 2, tensor: 2, expert: 4, expert_tensor: 1, context_exchange: ring", 4,
     ", sequence_parallel: true, overlap_tensor: false"},
    {"whole_experts_in_pieces", "name: mesh, data: 2, tensor: 2, expert: 2, expert_tensor: 1, shard_parameters: true",
     4, ", sequence_parallel: true"},
    {"whole_experts_and_all",
     "name: mesh, data: 2, tensor: 2, pipeline: 2, expert: 2, expert_tensor: 1, micro_batches: 2, "
     "distributed_optimizer: true",
     8, ", sequence_parallel: true, activation_checkpointing: true"},
    {"parts_of_experts", "name: mesh, tensor: 4, expert: 2, expert_tensor: 2", 4, ", sequence_parallel: true"},
    {"parts_of_experts_twice", "name: mesh, data: 2, tensor: 4, expert: 2, expert_tensor: 2", 8,
     ", sequence_parallel: true"},
    {"parts_of_experts_of_replicas", "name: mesh, data: 2, tensor: 4, expert: 4, expert_tensor: 2", 8,
     ", sequence_parallel: true, overlap_tensor: false"},
    {"parts_of_experts_of_all", "name: mesh, tensor: 4, expert_tensor: 2", 4, ", sequence_parallel: true"},
    {"parts_of_experts_of_sequences",
     "name: mesh, context: 2, tensor: 4, expert: 4, expert_tensor: 2, context_exchange: ring", 8,
     ", sequence_parallel: true"},
    {"parts_of_experts_in_pieces", "name: mesh, tensor: 4, expert_tensor: 2, shard_parameters: true", 4,
     ", sequence_parallel: true"},
    {"parts_of_experts_and_all",
     "name: mesh, tensor: 4, pipeline: 2, expert_tensor: 2, micro_batches: 2, distributed_optimizer: true", 8,
     ", sequence_parallel: true, activation_checkpointing: true"},
    {"parts_of_experts_later",
     "name: mesh, tensor: 4, pipeline: 2, expert: 2, expert_tensor: 2, micro_batches: 4, schedule: zero_bubble", 8,
     ", sequence_parallel: true"},
    {"experts_in_passes", "name: mesh, data: 2, pipeline: 2, expert: 2, micro_batches: 4"},
    {"experts_again", "name: mesh, data: 2, expert: 2", 2, ", activation_checkpointing: true"},
    {"pieces_of_experts", "name: mesh, data: 4, expert: 2, shard_parameters: true", 4},
    {"divided_state", "name: mesh, data: 4, expert: 2, distributed_optimizer: true, overlap_gather: true"},
    {"dropout", "name: mesh, data: 2, context: 2, tensor: 2, expert: 4", 8, ", dropout: 0.25, sequence_parallel: true"},
    {"all", "name: mesh, data: 2, tensor: 2, pipeline: 2, expert: 2, micro_batches: 2, distributed_optimizer: true", 8,
     ", sequence_parallel: true, activation_checkpointing: true"},
    {"interleaved",
     "name: mesh, data: 2, context: 2, pipeline: 2, virtual_stages: 2, expert: 2, micro_batches: 4, "
     "distributed_optimizer: true",
     8},
};

INSTANTIATE_TEST_SUITE_P(Ways, ComputedExperts, testing::ValuesIn(kExpertWays),
                         [](const auto& instance) { return instance.param.name; });

// Experts that are not divided among tensor-parallel devices, each of which sends its own rows to them.
TEST(ComputedWholeExperts, LearnWhatOneDeviceLearns) {
  const std::string whole = TANDEM_SOURCE_DIR "/tests/scenarios/good/files/mixture_whole.yaml";
  for (const char* rows : {"", ", sequence_parallel: true"}) {
    expect_same_losses(whole, {"whole", "name: mesh, data: 2, tensor: 2, expert: 2", 4, rows}, kThreads);
  }
}

TEST(ComputedGatedExperts, LearnWhatOneDeviceLearns) {
  expect_same_losses(kGated, {"data", "name: mesh, data: 2, tensor: 2, expert: 2", 4, ", sequence_parallel: true"},
                     kThreads);
  expect_same_losses(
      kGated, {"whole", "name: mesh, data: 2, tensor: 2, expert: 4, expert_tensor: 1", 4, ", sequence_parallel: true"},
      kThreads);
  expect_same_losses(kGated, {"again", "name: mesh, data: 4, expert: 4", 4, ", activation_checkpointing: true"},
                     kThreads);
}

// One layer of the mixture, by what its name ends with.
Layer& layer_of(Model& model, const std::string& name) {
  return *std::ranges::find_if(model.layers, [&](const Layer& layer) { return layer.name.ends_with(name); });
}

std::string problem_after(const std::function<void(Model&)>& change) {
  Model model = read_model(kGated);
  change(model);
  return flow_problem(model).value_or("none");
}

TEST(ComputedExpertsFlow, SaysWhatCannotBeComputed) {
  EXPECT_EQ(problem_after([](Model&) {}), "none");
  const auto without = [](const std::string& name) {
    return problem_after([&](Model& model) {
      const auto gone = model.layers.begin() + (&layer_of(model, name) - model.layers.data());
      model.layers.erase(gone);
    });
  };
  EXPECT_THAT(without(".router"), HasSubstr("'block.0.dispatch' follows no router"));
  EXPECT_THAT(without(".dispatch"), HasSubstr("'block.0.router' has a softmax outside attention, and is no router"));
  EXPECT_THAT(without(".gate"), HasSubstr("'block.0.up' has a gate, and no layer beside it"));
  EXPECT_THAT(without(".combine"), HasSubstr("'block.1.query' follows experts, whose results nothing combines"));
  EXPECT_THAT(problem_after([](Model& model) {
                layer_of(model, ".up").gemm->experts = 1;
                layer_of(model, ".up").tensors.front() /= 4;
                std::swap(layer_of(model, ".gate"), layer_of(model, ".up"));
              }),
              HasSubstr("'block.0.up' follows a `dispatch`, and has no experts"));
  EXPECT_THAT(problem_after([](Model& model) {
                layer_of(model, ".router").shared_weights = true;
                layer_of(model, ".router").tensors.erase(layer_of(model, ".router").tensors.begin());
              }),
              HasSubstr("'block.0.router' shares weights otherwise than"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".down").split = Layer::Split::none; }),
              HasSubstr("'block.0.down' is split otherwise than experts whose first layers have columns"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".combine").block.reset(); }),
              HasSubstr("'block.0.combine' is in another block than its router"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".router").split = Layer::Split::columns; }),
              HasSubstr("is a router, which has a softmax, perhaps after a bias, and is not split"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".dispatch").routing->used = 5; }),
              HasSubstr("uses more experts than its router knows"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".dispatch").routing->columns = 8; }),
              HasSubstr("does not have the 16 columns of its router's input"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".dispatch").then = {Pointwise::dropout}; }),
              HasSubstr("has operations on rows that go to experts"));
  EXPECT_THAT(problem_after([](Model& model) {
                layer_of(model, ".up").gemm->experts = 2;
                layer_of(model, ".up").tensors.front() /= 2;
              }),
              HasSubstr("has other experts than its router knows"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".up").gemm->rows = 8; }),
              HasSubstr("has other rows than go to its experts"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".up").then.push_back(Pointwise::dropout); }),
              HasSubstr("operations on the rows of experts that are no activation"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".down").then = {Pointwise::relu}; }),
              HasSubstr("'block.0.down' has operations; those of the last experts follow `combine`"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".combine").routing->used = 1; }),
              HasSubstr("combines other rows than were sent"));
  EXPECT_THAT(problem_after([](Model& model) { layer_of(model, ".combine").then.push_back(Pointwise::softmax); }),
              HasSubstr("has a gate, a softmax or a loss"));
}

// Rows are copied once to each expert that they use; the operations after the sum work on the rows themselves.
TEST(ExpertTables, CountTheRowsThatGoToExperts) {
  Model model = read_model(find_data("scenarios/models/moe_tiny.yaml"));
  EXPECT_EQ(layer_of(model, ".dispatch").output_elements(), 2 * 64 * 64);
  EXPECT_EQ(layer_of(model, ".combine").output_elements(), 64 * 64);
  EXPECT_EQ(layer_of(model, ".combine").parameters(), 2 * 64);
  const Layer part = layer_of_tokens(layer_of(model, ".combine"), 4);
  EXPECT_EQ(part.output_elements(), 64 * 64 / 4);
  EXPECT_EQ(part.elementwise->elements, 2 * 64 * 64 / 4);
  const Layer whole = layer_of_tokens(layer_of(model, ".combine"), 3);  // does not divide
  EXPECT_EQ(whole.output_elements(), 64 * 64);
  EXPECT_EQ(whole.elementwise->elements, 2 * 64 * 64);
}

}  // namespace
}  // namespace tandem
