// What forward passes keep, against formulas of the literature.
#include "scenarios/workloads/activations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "strategies/model/recomputation.h"
#include "tests/scenarios/gpt_layers.h"

namespace tandem {
namespace {

constexpr std::int64_t kTokens = 2048, kHidden = 2304, kHeads = 24, kExamples = 4;

std::int64_t bytes_of_one_block(int tensor, bool checkpointing = false) {
  const ActivationSettings settings{.examples = kExamples, .dtype = DType::bf16, .recomputed = {.any = checkpointing}};
  return activation_bytes(gpt_layers(3, tensor), settings) - activation_bytes(gpt_layers(2, tensor), settings);
}

// Korthikanti and others (arXiv:2205.05198): s b h (34 + 5 a s / h), and equation 2, s b h (10 + 24 / t + 5 a s / (h
// t)).
TEST(Activations, OfATransformerBlockAreThoseOfThePublishedFormula) {
  constexpr std::int64_t kElements = kTokens * kExamples * kHidden;
  constexpr std::int64_t kScores = 5 * kHeads * kTokens * kTokens * kExamples;
  EXPECT_EQ(bytes_of_one_block(1), 34 * kElements + kScores);
  EXPECT_EQ(bytes_of_one_block(2), (10 + 12) * kElements + kScores / 2);
  EXPECT_EQ(bytes_of_one_block(8), (10 + 3) * kElements + kScores / 8);
}

// Equation 4, with sequence parallelism: s b h (34 + 5 a s / h) / t.
TEST(Activations, OfABlockWhoseRowsAreDividedAreThoseOfThePublishedFormula) {
  constexpr std::int64_t kElements = kTokens * kExamples * kHidden;
  constexpr std::int64_t kScores = 5 * kHeads * kTokens * kTokens * kExamples;
  for (const int tensor : {2, 8}) {
    const auto bytes_of = [&](int blocks) {
      std::vector<Layer> parts = gpt_layers(blocks, tensor);
      for (Layer& part : parts) {
        if (part.split == Layer::Split::none) part = rows_of_whole_layer(part, tensor);
      }
      return activation_bytes(parts, {.examples = kExamples, .dtype = DType::bf16, .row_parts = tensor});
    };
    EXPECT_EQ(bytes_of(3) - bytes_of(2), (34 * kElements + kScores) / tensor);
  }
}

// Every device has its tokens, and keys and values of these.
TEST(Activations, OfABlockWhoseSequencesAreDividedAreAPart) {
  const auto bytes_of = [](int blocks) {
    std::vector<Layer> parts = gpt_layers(blocks, 2);
    for (Layer& part : parts) part = layer_of_tokens(part, 4);
    return activation_bytes(parts, {.examples = kExamples, .dtype = DType::bf16, .key_parts = 4});
  };
  EXPECT_EQ(bytes_of(3) - bytes_of(2), bytes_of_one_block(2) / 4);
}

TEST(Activations, OfACheckpointedBlockAreItsInput) {
  EXPECT_EQ(bytes_of_one_block(1, true), 2 * kTokens * kExamples * kHidden);
  EXPECT_EQ(bytes_of_one_block(8, true), 2 * kTokens * kExamples * kHidden);
  const ActivationSettings settings{.examples = kExamples, .dtype = DType::bf16, .recomputed = {.any = true}};
  const PassMemory pass = pass_memory(gpt_layers(3), settings);
  std::int64_t again = 0;  // that a backward pass holds of what it computes again, at most
  for (std::size_t i = 0; i < pass.backward.size(); ++i) {
    again = std::max(again, pass.backward[i].kept - pass.forward[i].kept);
  }
  EXPECT_EQ(again, bytes_of_one_block(1));
}

// Section 5 of the same: without the scores of attention, s b h (10 + 24 / t).
TEST(Activations, OfABlockWhoseAttentionIsComputedAgainAreThoseOfThePublishedFormula) {
  const auto bytes_of = [](int blocks, int tensor) {
    Model model = read_model(find_data("scenarios/models/gpt.yaml"), {{"layers", blocks}});
    EXPECT_EQ(recompute_module("core_attn", model), std::nullopt);
    std::vector<Layer> parts;
    for (const Layer& layer : model.layers) parts.push_back(layer_part(layer, tensor, 0));
    return activation_bytes(parts, {.examples = kExamples, .dtype = DType::bf16});
  };
  constexpr std::int64_t kElements = kTokens * kExamples * kHidden;
  for (const int tensor : {1, 2, 8}) {
    EXPECT_EQ(bytes_of(3, tensor) - bytes_of(2, tensor), (10 + 24 / tensor) * kElements) << tensor;
  }
}

// 14 s b h of inputs of products and 18 s b h of gradients of what these make: M_W of table 1 of Qi and others, "Zero
// Bubble Pipeline Parallelism" (arXiv:2401.10241). A forward pass keeps 34, and the scores of attention.
TEST(Activations, LeftForGradientsOfWeightsAreThoseOfThePublishedFormula) {
  const auto bytes_of = [](int blocks, bool checkpointing) {
    const ActivationSettings settings{
        .examples = kExamples, .dtype = DType::bf16, .recomputed = {.any = checkpointing}};
    return pass_memory(gpt_layers(blocks), settings).left.front();
  };
  constexpr std::int64_t kElements = kTokens * kExamples * kHidden;
  EXPECT_EQ(bytes_of(3, false) - bytes_of(2, false), 32 * kElements);
  EXPECT_EQ(bytes_of(3, true) - bytes_of(2, true), 32 * kElements) << "whatever was computed again";
}

TEST(Activations, OfBlocksOfWhichSomeAreComputedAgain) {
  const auto bytes_of = [](const RecomputedBlocks& blocks) {
    return activation_bytes(gpt_layers(6), {.examples = kExamples, .dtype = DType::bf16, .recomputed = blocks});
  };
  const std::int64_t whole = bytes_of_one_block(1), input = bytes_of_one_block(1, true);
  const std::int64_t none = bytes_of({});
  EXPECT_EQ(none - bytes_of({.any = true}), 6 * (whole - input));
  EXPECT_EQ(none - bytes_of({.any = true, .first = 2}), 2 * (whole - input));
  EXPECT_EQ(none - bytes_of({.any = true, .every = 3}), 2 * (whole - input));
  EXPECT_EQ(none - bytes_of({.any = true, .together = 3}), 6 * whole - 2 * input);
}

// torchtitan keeps the results of every other product, those of attention, and the input of a block.
TEST(Activations, OfABlockWhoseOperationsAreComputedAgain) {
  const auto bytes_of = [](int blocks) {
    Model model = read_model(find_data("scenarios/models/llama.yaml"), {{"layers", blocks}});
    recompute_operations(model);
    return activation_bytes(model.layers, {.dtype = DType::bf16, .keeps_scores = false});
  };
  // Queries, values, attention, gates, and what goes down again; keys, attention's output and `up` are lost.
  constexpr std::int64_t kOfToken = 2 * (4096 + 4096 + 1024 + 4096 + 14336 + 4096);
  EXPECT_EQ(bytes_of(3) - bytes_of(2), 8192 * kOfToken);
}

}  // namespace
}  // namespace tandem
