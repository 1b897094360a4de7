// Dividing tables of layers: what the parts have together, what they exchange, and what cannot be divided.
#include "strategies/parallel/layout/layer_division.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "scenarios/model/model_reader.h"
#include "scenarios/workloads/layer_kernels.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

Model sized(const std::string& name, const std::map<std::string, std::int64_t>& sizes = {}) {
  return read_model(find_data("scenarios/models/" + name + ".yaml"), sizes);
}

// Sums what the parts of a layer have.
template <typename Of>
std::int64_t over_parts(const Layer& layer, int parts, Of of) {
  std::int64_t sum = 0;
  for (int part = 0; part < parts; ++part) sum += of(layer_part(layer, parts, part));
  return sum;
}

class TensorParts : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(TensorParts, HaveTheFlopsAndTheWeightsOfTheWholeLayer) {
  const auto& [name, parts] = GetParam();
  const Model model = sized(name);
  ASSERT_EQ(tensor_problem(model, parts), std::nullopt);
  for (const Layer& layer : model.layers) {
    const bool is_split = layer.split != Layer::Split::none;
    const std::int64_t times = is_split ? 1 : parts;  // what is not split, every device does
    EXPECT_EQ(over_parts(layer, parts, [](const Layer& part) { return part.forward_macs(); }),
              times * layer.forward_macs())
        << layer.name;
    // Weights are divided; what follows a sum (biases, norms) every device has.
    const std::int64_t weights = layer.tensors.empty() ? 0 : layer.tensors.front();
    const bool has_all_divided = layer.split == Layer::Split::columns;
    const std::int64_t divided = has_all_divided ? layer.parameters() : weights;
    EXPECT_EQ(over_parts(layer, parts, [](const Layer& part) { return part.parameters(); }),
              is_split ? divided + parts * (layer.parameters() - divided) : parts * layer.parameters())
        << layer.name;
  }
}

TEST_P(TensorParts, MoveTheBytesOfTheWholeOutput) {
  const auto& [name, parts] = GetParam();
  for (const Layer& layer : sized(name).layers) {
    // The parts of rows and of tables are sums to be: each is as large as the whole.
    const bool is_sum = layer.split == Layer::Split::rows || layer.split == Layer::Split::entries;
    const bool is_whole = is_sum || layer.split == Layer::Split::none;
    EXPECT_EQ(over_parts(layer, parts, [](const Layer& part) { return part.output_elements(); }),
              (is_whole ? parts : 1) * layer.output_elements())
        << layer.name;
    EXPECT_EQ(sums_output(layer), is_sum);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TensorParts,
                         testing::Combine(testing::Values("gpt", "bert_large", "bert_large_squad", "transformer_big"),
                                          testing::Values(1, 2, 4, 8)));

// Megatron-LM: two sums forward and two backward for each block, and one for the embeddings.
TEST(TensorParts, ExchangeTwiceForEachPassOfABlock) {
  for (const char* name : {"gpt", "bert_large"}) {
    const Model model = sized(name);
    int forward = 0, backward = 0, losses = 0;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      forward += sums_output(model.layers[i]) ? 1 : 0;
      backward += sums_input_gradient(model.layers, i) ? 1 : 0;
      losses += divides_loss(model.layers[i]) ? 1 : 0;
    }
    EXPECT_EQ(forward, 24 * 2 + 1) << name;   // and the look-up of words
    EXPECT_EQ(backward, 24 * 2 + 1) << name;  // and the product with the vocabulary
    EXPECT_EQ(losses, 1) << name;
  }
}

TEST(TensorParts, MayDifferWhereTheVocabularyDoesNotDivide) {
  const Model model = sized("bert_large");  // 30,522 words and 514 positions
  const Layer& embeddings = model.layers.front();
  EXPECT_EQ(layer_part(embeddings, 8, 0).embedding->entries, 3880);
  EXPECT_EQ(layer_part(embeddings, 8, 7).embedding->entries, 3879);
  EXPECT_EQ(tensor_problem(model, 16), std::nullopt);
}

TEST(TensorParts, NeedSizesThatDivide) {
  EXPECT_EQ(*tensor_problem(sized("gpt"), 5),
            "5 tensor-parallel devices do not divide the 24 products (heads) of layer 'block.0.scores'; 4 or 6 do");
  EXPECT_EQ(*tensor_problem(sized("gpt", {{"hidden", 2400}, {"heads", 48}}), 64),
            "64 tensor-parallel devices do not divide the 48 products (heads) of layer 'block.0.scores'; 48 do");
  EXPECT_EQ(*tensor_problem(sized("resnet50"), 2),
            "model 'resnet50' does not say how its layers are split among tensor-parallel devices (`split`)");
  EXPECT_EQ(tensor_problem(sized("resnet50"), 1), std::nullopt);
}

const Layer& layer_named(const Model& model, const std::string& name) {
  return *std::ranges::find_if(model.layers, [&](const Layer& layer) { return layer.name == name; });
}

// Llama 3 8B has 32 heads, of which 4 share keys and values.
TEST(KeyElements, AreThoseOfAtLeastOneHead) {
  const Model model = sized("llama", {{"tokens", 1024}});
  const Layer& scores = layer_named(model, "block.0.scores");
  EXPECT_EQ(key_elements(scores), 8 * 128 * 1024);
  EXPECT_EQ(key_elements(layer_part(scores, 8, 0)), 128 * 1024);
  EXPECT_EQ(key_elements(layer_part(scores, 16, 0)), 128 * 1024) << "two devices have the same keys";
  EXPECT_EQ(*heads_problem(model, 2, 16),
            "all_to_all divides heads: 2 devices do not divide the 1 heads of keys and values that a device has in "
            "layer 'block.0.scores'; 1 does; ring and all_gather divide tokens only");
}

TEST(KeyElements, ThatArePassedOnAreThoseOfAllTokensOfAWindow) {
  Layer scores = layer_named(sized("llama", {{"tokens", 1024}}), "block.0.scores");
  scores.gemm->columns = 256;  // a window
  scores.gemm->attended = 0.9;
  const auto passed = [&](const Layer& layer, ContextExchange exchange) {
    return passed_key_elements(layer, {.context = 4, .context_exchange = exchange});
  };
  Layer part = scores;
  part.gemm->rows = 1024 / 4;
  EXPECT_EQ(passed(part, ContextExchange::all_gather), 8 * 128 * 256);
  EXPECT_EQ(passed(part, ContextExchange::ring), 8 * 128 * 1024);
  EXPECT_EQ(passed(scores, ContextExchange::all_to_all), 8 * 128 * 1024) << "a device has all tokens";
  part.gemm->attended = 1;  // no window: fewer keys, as of another sequence
  EXPECT_EQ(passed(part, ContextExchange::ring), 8 * 128 * 256);
}

TEST(Stages, HaveEqualNumbersOfBlocks) {
  const Model model = sized("gpt");  // embeddings, 24 blocks of 6 layers, decoder
  EXPECT_EQ(first_layers_of_stages(model, 1), (std::vector<std::size_t>{0, 146}));
  EXPECT_EQ(first_layers_of_stages(model, 2), (std::vector<std::size_t>{0, 73, 146}));
  EXPECT_EQ(first_layers_of_stages(model, 4), (std::vector<std::size_t>{0, 37, 73, 109, 146}));
  EXPECT_EQ(model.layers[73].block, (Layer::Block{.group = "block", .copy = 12}));
  EXPECT_EQ(
      *stage_problem(model, 5),
      "5 stages do not divide the 24 blocks 'block' of model 'gpt': stage_blocks gives each stage a number of its "
      "own, such as [5, 5, 5, 5, 4]");
  EXPECT_EQ(*stage_problem(model, 48), "48 stages do not divide the 24 blocks 'block' of model 'gpt'");
  EXPECT_EQ(*stage_problem(sized("vgg16"), 2),
            "pipeline stages consist of the copies of one group that repeats; model 'vgg16' has 0 such groups");
  EXPECT_EQ(
      *stage_problem(sized("transformer_big"), 2),
      "pipeline stages consist of the copies of one group that repeats; model 'transformer_big' has 2 such groups");
}

TEST(Stages, HaveTheNumbersOfBlocksThatAreGiven) {
  const Model model = sized("gpt");
  EXPECT_EQ(first_layers_of_stages(model, 3, {7, 9, 8}), (std::vector<std::size_t>{0, 43, 97, 146}));
  EXPECT_EQ(first_layers_of_stages(model, 4, {0, 12, 12, 0}), (std::vector<std::size_t>{0, 1, 73, 145, 146}))
      << "embeddings and decoder have stages of their own";
  EXPECT_EQ(*stage_problem(model, 3, {12, 12}),
            "stage_blocks has 2 numbers, and there are 3 stages (pipeline x virtual_stages)");
  EXPECT_EQ(*stage_problem(model, 2, {12, 11}), "stage_blocks has 23 blocks in all, and model 'gpt' has 24");
  EXPECT_EQ(*stage_problem(model, 3, {12, 0, 12}),
            "stage 1 has no block; only the first and the last stage have other layers");
}

TEST(Stages, WithFewerBlocksAreFirstAndLast) {
  EXPECT_EQ(nearly_equal_blocks(6, 4), (std::vector<int>{1, 2, 2, 1}));
  EXPECT_EQ(nearly_equal_blocks(61, 16), (std::vector<int>{3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3}));
  EXPECT_EQ(nearly_equal_blocks(8, 4), (std::vector<int>{2, 2, 2, 2}));
}

}  // namespace
}  // namespace tandem
