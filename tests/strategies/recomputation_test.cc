// Which layers are computed again before the backward pass of which, and what is kept.
#include "strategies/model/recomputation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

using testing::ElementsAre;

Layer layer_of(std::string name, std::int64_t copy, std::vector<Pointwise> then = {}) {
  Layer layer;
  layer.name = "block." + std::to_string(copy) + "." + std::move(name);
  layer.gemm = Layer::Gemm{.rows = 4, .columns = 8, .depth = 8};
  layer.block = Layer::Block{.group = "block", .copy = copy};
  layer.then = std::move(then);
  return layer;
}

// Two blocks of attention and a perceptron between an embedding and a head.
Model decoder(int blocks = 2) {
  Model model;
  model.name = "decoder";
  Layer outside;
  outside.name = "embedding";
  outside.embedding = Layer::Embedding{.rows = 4, .columns = 8, .entries = 16};
  model.layers.push_back(outside);
  for (int i = 0; i < blocks; ++i) {
    model.layers.push_back(layer_of("qkv", i));
    model.layers.push_back(layer_of("scores", i, {Pointwise::softmax}));
    model.layers.back().gemm->batched = true;
    model.layers.back().scores = Layer::Scores::made;
    model.layers.push_back(layer_of("context", i));
    model.layers.back().gemm->batched = true;
    model.layers.back().scores = Layer::Scores::read;
    model.layers.push_back(layer_of("out", i, {Pointwise::residual, Pointwise::rms_norm}));
    model.layers.push_back(layer_of("up", i, {Pointwise::gelu}));
    model.layers.push_back(layer_of("down", i, {Pointwise::residual, Pointwise::rms_norm}));
  }
  outside.name = "head";
  model.layers.push_back(outside);
  return model;
}

// "12: 7 8 9*", in which * has no product.
std::string text_of(const Model& model, const RecomputedBlocks& blocks = {}) {
  const Recomputation recomputation(model.layers, blocks);
  std::string text;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (recomputation.before(i).empty()) continue;
    text += fmt::format("{}{}:", text.empty() ? "" : "; ", i);
    for (const Again& again : recomputation.before(i)) {
      text += fmt::format(" {}{}", again.layer, again.with_product ? "" : "*");
    }
  }
  return text;
}

TEST(Recomputation, WholeBlocksEndWithTheirLastLayer) {
  const Model model = decoder();
  EXPECT_EQ(text_of(model), "");
  EXPECT_EQ(text_of(model, {.any = true}), "6: 1 2 3 4 5 6; 12: 7 8 9 10 11 12");
  const Recomputation recomputation(model.layers, {.any = true});
  EXPECT_FALSE(recomputation.keeps_output(5));
  EXPECT_TRUE(recomputation.keeps_output(6));
  EXPECT_TRUE(recomputation.keeps_output(0));
  EXPECT_EQ(recomputation.first_of(9), 7U);
}

TEST(Recomputation, SomeBlocksOfAStage) {
  const Model model = decoder(3);
  EXPECT_EQ(text_of(model, {.any = true, .first = 1}), "6: 1 2 3 4 5 6");
  EXPECT_EQ(text_of(model, {.any = true, .every = 2}), "6: 1 2 3 4 5 6; 18: 13 14 15 16 17 18");
  EXPECT_EQ(text_of(model, {.any = true, .together = 2}), "12: 1 2 3 4 5 6 7 8 9 10 11 12; 18: 13 14 15 16 17 18");
  EXPECT_EQ(text_of(model, {.any = true, .first = 9}), text_of(model, {.any = true}));
}

TEST(Recomputation, ModulesOfEveryBlock) {
  const auto with = [](const char* module) {
    Model model = decoder();
    EXPECT_EQ(recompute_module(module, model), std::nullopt) << module;
    return text_of(model);
  };
  EXPECT_EQ(with("core_attn"), "3: 2 3; 9: 8 9");
  EXPECT_EQ(with("mlp"), "6: 5 6; 12: 11 12");
  EXPECT_EQ(with("act"), "5: 5*; 11: 11*");
  EXPECT_EQ(with("layernorm"), "4: 4*; 6: 6*; 10: 10*; 12: 12*");
  Model both = decoder(1);
  recompute_module("core_attn", both);
  recompute_module("layernorm", both);
  EXPECT_EQ(text_of(both), "3: 2 3; 4: 4*; 6: 6*");
}

TEST(Recomputation, BlocksOfDecodersHaveTwoAttentions) {
  Model model = decoder(1);
  std::vector<Layer> cross(model.layers.begin() + 1, model.layers.begin() + 5);
  model.layers.insert(model.layers.begin() + 5, cross.begin(), cross.end());
  Model again = model;
  EXPECT_EQ(recompute_module("core_attn", again), std::nullopt);
  EXPECT_EQ(text_of(again), "3: 2 3; 7: 6 7");
  EXPECT_EQ(recompute_module("mlp", again), std::nullopt);
  EXPECT_EQ(text_of(again), "3: 2 3; 7: 6 7; 10: 9 10");
}

TEST(Recomputation, AModuleThatAModelLacksIsNamed) {
  Model model = decoder();
  EXPECT_EQ(recompute_module("moe", model),
            "the groups that repeat in model 'decoder' have no experts after attention");
  EXPECT_EQ(recompute_module("mla_up_proj", model),
            "the groups that repeat in model 'decoder' have no multi-head latent attention");
  EXPECT_EQ(text_of(model), "");
}

TEST(Recomputation, LayersByNameJoinWhereTheyFollowEachOther) {
  Model model = decoder(1);
  EXPECT_TRUE(recompute_layer("up", model));
  EXPECT_EQ(text_of(model), "5: 5");
  EXPECT_TRUE(recompute_layer("down", model));
  join_recomputed_layers(model);
  EXPECT_EQ(text_of(model), "6: 5 6");
  Model reverse = decoder(2);
  for (const char* name : {"context", "scores"}) EXPECT_TRUE(recompute_layer(name, reverse));
  join_recomputed_layers(reverse);
  EXPECT_EQ(text_of(reverse), "3: 2 3; 9: 8 9") << "in whatever order they are named";
  EXPECT_FALSE(recompute_layer("p", model)) << "a part of a name";
  EXPECT_FALSE(recompute_layer("head", model)) << "of no block";
}

TEST(Recomputation, OperationsKeepEveryOtherProduct) {
  Model model = decoder(1);
  recompute_operations(model);
  EXPECT_EQ(text_of(model), "6: 1* 2* 3* 4 5* 6");
  EXPECT_TRUE(has_recomputed_layers(model));
  EXPECT_FALSE(has_recomputed_layers(decoder()));
}

}  // namespace
}  // namespace tandem
