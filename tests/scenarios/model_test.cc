// Models: their totals are the published ones, and files are read strictly.
#include "scenarios/model/model_reader.h"

#include <gtest/gtest.h>

#include <fstream>

#include "topologies/base/error.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

Model packaged(const std::string& name) {
  return read_model(find_data("scenarios/models/" + name + ".yaml"));
}

TEST(Models, ResNet50HasThePublishedTotals) {
  const Model model = packaged("resnet50");
  EXPECT_EQ(model.parameters(), 25'557'032);                                 // torchvision, num_params
  EXPECT_NEAR(static_cast<double>(model.forward_macs()), 4.089e9, 0.001e9);  // torchvision, _ops
  int convolutions = 0;
  for (const Layer& layer : model.layers) convolutions += layer.convolution ? 1 : 0;
  EXPECT_EQ(convolutions, 53);  // 49 in the path of the 50 layers, and 4 in shortcuts
}

TEST(Models, BertLargeHasThePublishedTotals) {
  const Model model = packaged("bert_large");
  EXPECT_EQ(model.unit, "sequences");
  EXPECT_EQ(model.parameters(), 336'226'108);  // the pre-training model of bert-large-uncased
  // Encoder: 2 flops a parameter and token, and two products of sequence x sequence x hidden a layer.
  const double encoder = 128.0 * 24 * (4 * 1024 * 1024 + 2 * 1024 * 4096) + 24.0 * 2 * 128 * 128 * 1024;
  const double heads = 1024.0 * 1024 + 20.0 * 1024 * 1024 + 20.0 * 1024 * 30522 + 2 * 1024;
  EXPECT_DOUBLE_EQ(static_cast<double>(model.forward_macs()), encoder + heads);
  EXPECT_EQ(model.layers[1].name, "encoder.0.query");
}

TEST(Models, TotalsOfTheOthersAreThePublishedOnes) {
  const auto millions = [](const Model& model) { return static_cast<double>(model.parameters()) / 1e6; };
  const auto training_gflop = [](const Model& model) { return 6e-9 * static_cast<double>(model.forward_macs()); };
  EXPECT_NEAR(millions(packaged("resnext101_32x4d")), 44.18, 0.01);
  EXPECT_NEAR(training_gflop(packaged("resnext101_32x4d")), 47.8, 0.1);
  EXPECT_NEAR(millions(packaged("bert_base")), 110.1, 0.1);  // 109.5 without the heads
  EXPECT_NEAR(training_gflop(packaged("bert_base")), 69.9, 0.1);
  EXPECT_NEAR(training_gflop(packaged("bert_large")), 240.6, 0.1);
  EXPECT_NEAR(millions(packaged("transformer_big")), 210.8, 0.1);
  // A pair of 32 and 32 tokens; the source counts tokens of one side.
  EXPECT_NEAR(training_gflop(packaged("transformer_big")) / 32, 1.27, 0.01);
  // Two embeddings of the vocabulary, nine LSTMs of 1,024 (five with inputs of 1,024 and four of 2,048), the attention.
  EXPECT_EQ(packaged("gnmt").parameters(),
            2 * 32320 * 1024 + 32320 + 4096 * (9 * 1024 + 5 * 1024 + 4 * 2048) + 9 * 8192 + 2 * 1024 * 1024 + 1024);
  EXPECT_TRUE(packaged("gnmt").is_recurrent);
  EXPECT_NEAR(millions(packaged("gpt")), 1652, 1);           // "1.7B"
  EXPECT_EQ(packaged("llama").parameters(), 8'030'261'248);  // meta-llama/Llama-3.1-8B, its safetensors
  EXPECT_NEAR(millions(packaged("resnet32")), 1.856, 0.001);
  EXPECT_EQ(packaged("resnet101").parameters(), 44'549'160);
  EXPECT_EQ(packaged("resnet152").parameters(), 60'192'808);
  EXPECT_EQ(packaged("vgg16").parameters(), 138'357'544);
}

// torchvision states 25,028,904 parameters for resnext50_32x4d and 34,014,999 for retinanet_resnet50_fpn, which has the
// same pyramid and heads, for 91 classes.
TEST(Models, RetinaNetHasThePublishedTotals) {
  const Model model = packaged("retinanet");
  const std::int64_t backbone = 25'028'904 - 1000 * 2049, convolution = 9 * 256 * 256 + 256;
  const std::int64_t pyramid = (512 + 1024 + 2048 + 3) * 256 + 5 * convolution;
  const auto heads = [&](std::int64_t classes) { return 8 * convolution + 9 * (classes + 4) * (9 * 256 + 1); };
  EXPECT_EQ(25'557'032 - 1000 * 2049 - 53'120 + pyramid + heads(91), 34'014'999) << "53,120 of them of batch norms";
  EXPECT_EQ(model.parameters() + model.frozen_parameters(), backbone + pyramid + heads(264));
  std::int64_t anchors = 0;
  for (const Layer& layer : model.layers) {
    const bool is_frozen = layer.name.starts_with("conv1") || layer.name.starts_with("layer1");
    EXPECT_EQ(layer.is_frozen, is_frozen || layer.name == "maxpool") << layer.name;
    if (layer.name.starts_with("boxes.p") && layer.name.ends_with("out")) anchors += layer.output_elements() / 4;
  }
  EXPECT_EQ(anchors, 120'087);  // as the submissions' programs state
}

// Five convolutions down and five up, each twice; up, a transposed one of 2 x 2 x 2 before them.
TEST(Models, UNet3DHasThePublishedTotals) {
  const Model model = packaged("unet3d");
  const std::vector<std::int64_t> widths{32, 64, 128, 256, 320, 320};
  std::int64_t voxels = 128 * 128 * 128, macs = voxels * (27 * 33 * 32 + 3 * 32);
  std::int64_t parameters = 27 * 32 + 27 * 32 * 32 + 4 * 32 + 3 * 33;
  for (std::size_t i = 1; i < widths.size(); ++i) {
    const std::int64_t fine = widths[i - 1], coarse = widths[i], one = 27 * fine * fine;
    parameters += 27 * coarse * (fine + coarse) + 4 * coarse + 8 * fine * coarse + fine + 3 * one + 4 * fine;
    macs += voxels * 3 * one;
    voxels /= 8;
    macs += voxels * (27 * coarse * (fine + coarse) + 8 * fine * coarse);
  }
  EXPECT_EQ(model.parameters(), parameters);
  EXPECT_EQ(model.forward_macs(), macs);
  EXPECT_NEAR(static_cast<double>(parameters) / 1e6, 31.2, 0.05);  // nnU-Net's, as published
}

TEST(Models, SizesOfAScenarioReplaceThoseOfTheFile) {
  const auto sized = [](const std::string& name, const std::map<std::string, std::int64_t>& sizes) {
    return read_model(find_data("scenarios/models/" + name + ".yaml"), sizes);
  };
  const Model phase2 = sized("bert_large", {{"tokens", 512}, {"predictions", 80}});
  EXPECT_NEAR(6e-9 * static_cast<double>(phase2.forward_macs()), 1020, 1);
  EXPECT_EQ(phase2.parameters(), packaged("bert_large").parameters());
  EXPECT_EQ(phase2.input_elements, 512);
  // Megatron's 145 billion parameters.
  const Model gpt = sized("gpt", {{"hidden", 12288}, {"heads", 96}, {"layers", 80}});
  EXPECT_NEAR(static_cast<double>(gpt.parameters()) / 1e9, 145.6, 0.1);
  EXPECT_THROW(sized("bert_large", {{"token", 512}}), InputError);
  EXPECT_THROW(sized("bert_large", {{"heads", 17}}), InputError);  // 1024 / 17
}

TEST(Models, ConvolutionsChainTheirShapes) {
  // A convolution's input is the output of the layer before it, or of the block before it for a shortcut.
  const Model model = packaged("resnet50");
  std::int64_t trunk = 0, block = 0;  // elements
  for (const Layer& layer : model.layers) {
    if (layer.name == "maxpool") trunk = block = layer.output_elements();
    if (!layer.convolution || trunk == 0) continue;
    const bool is_shortcut = layer.name.ends_with("downsample");
    EXPECT_EQ(layer.gemm->input_elements, is_shortcut ? block : trunk) << layer.name;
    if (!is_shortcut) trunk = layer.output_elements();
    if (layer.name.ends_with("conv3")) block = trunk;
  }
}

TEST(Models, EveryPackagedModelIsRead) {
  const auto names = packaged_models();
  EXPECT_EQ(names, (std::vector<std::string>{"bert_base",    "bert_base_squad",
                                             "bert_large",   "bert_large_squad",
                                             "deepseek_v3",  "gnmt",
                                             "gpt",          "gpt_tiny",
                                             "layers_small", "llama",
                                             "mixtral",      "moe_tiny",
                                             "resnet101",    "resnet15",
                                             "resnet152",    "resnet32",
                                             "resnet50",     "resnext101_32x4d",
                                             "retinanet",    "transformer_big",
                                             "unet3d",       "vgg16"}));
  for (const std::string& name : names) EXPECT_EQ(packaged(name).name, name);
}

TEST(Models, RepeatedLayersAreNamedByTheirRound) {
  const Model model = read_model(TANDEM_SOURCE_DIR "/tests/scenarios/good/files/model.yaml");
  ASSERT_EQ(model.layers.size(), 5u);
  EXPECT_EQ(model.layers[3].name, "block.1.scores");
  EXPECT_EQ(model.parameters(), 20 + 2 * 8);
  EXPECT_EQ(model.forward_macs(), 2 * 4 * 4 + 2 * (2 * 2 * 2 * 2));
}

TEST(Models, ParametersFollowFromTheFormOfALayer) {
  const Model model = read_model(TANDEM_SOURCE_DIR "/tests/scenarios/good/files/forms.yaml");
  const auto tensors = [&](std::size_t layer) { return model.layers.at(layer).tensors; };
  EXPECT_EQ(tensors(0), (std::vector<std::int64_t>{40}));                   // 10 rows of 4
  EXPECT_EQ(tensors(1), (std::vector<std::int64_t>{2 * 4 * 2 * 9, 8, 8}));  // two groups of 2 channels, norm
  EXPECT_EQ(tensors(2), (std::vector<std::int64_t>{8 * 6, 6, 6, 6}));       // weights, bias, norm
  EXPECT_EQ(tensors(3), (std::vector<std::int64_t>{6}));                    // the bias; the weights are another's
  EXPECT_EQ(model.layers[1].gemm->rows, 3 * 5);                             // an image of 5 x 9, stride 2
  EXPECT_EQ(model.forward_macs(), 15 * 8 * 2 * 9 + 8 * 6 * 6 + 3 * 6 * 6);
  EXPECT_TRUE(model.depends_on_stack());
  EXPECT_EQ(model.stack.text(), "layout nchw, fusion compiled, attention fused_softmax");
}

Model model_of(const std::string& text) {
  const std::string file = testing::TempDir() + "/model_of_a_test.yaml";
  std::ofstream(file) << text;
  return read_model(file);
}

// What is wrong with a model, or an empty text.
std::string problem_of(const std::string& text) {
  try {
    model_of(text);
  } catch (const InputError& error) {
    return error.diagnostics().front().path + ": " + error.diagnostics().front().message;
  }
  return "";
}

TEST(Models, KeysWithoutEffectAreRefused) {
  const std::string head = "schema_version: 1\nname: m\nsource: made up\ninput: 4\nparameters: 20\nmacs: 16\n";
  const std::string dense = "layers:\n  - {name: a, dense: {rows: 1, inputs: 4, outputs: width}, then: [bias]}\n";
  EXPECT_EQ(problem_of(head + "sizes: {width: 4}\n" + dense), "");
  EXPECT_EQ(problem_of(head + "sizes: {width: 4, depth: 8}\n" + dense),
            "sizes.depth: no layer uses 'depth', and the input neither");
  std::string with_norm = head + "sizes: {width: 4}\n" + dense;
  with_norm.replace(with_norm.find("then: [bias]"), 12, "then: [bias], norm_size: 2");
  EXPECT_EQ(problem_of(with_norm),
            "layers[0].norm_size: is for batch_norm, layer_norm and rms_norm, and `then` has none of them");
}

std::string convolutions(const std::string& layers, const std::string& totals) {
  return "schema_version: 1\nname: m\nsource: made up\ninput: 4\n" + totals + "\nlayers:\n" + layers;
}

TEST(Models, ConvolutionsMayHaveThreeSides) {
  const std::string layer = "  - {name: a, convolution: {image: [4, 6, 8], channels: [2, 3], kernel: 3, stride: 2}}\n";
  const Model model = model_of(convolutions(layer, "parameters: 162\nmacs: 3888"));
  EXPECT_EQ(model.layers[0].gemm->rows, 2 * 3 * 4);
  EXPECT_EQ(model.layers[0].gemm->depth, 2 * 27);
  EXPECT_EQ(model.layers[0].gemm->input_elements, 4 * 6 * 8 * 2);
  EXPECT_EQ(problem_of(convolutions("  - {name: a, convolution: {image: [4, 6, 8, 2], channels: [2, 3], kernel: 3}}\n",
                                    "parameters: 1\nmacs: 1")),
            "layers[0].convolution.image: needs [height, width] or [depth, height, width], found 4 of them");
}

TEST(Models, LayersMayBeFrozenOrHaveTheWeightsOfOthers) {
  const std::string layers =
      "  - {name: a, convolution: {image: 4, channels: [2, 2], kernel: 1}, then: [batch_norm], frozen: all}\n"
      "  - {name: b, convolution: {image: 4, channels: [2, 2], kernel: 1}, then: [batch_norm], frozen: norms}\n"
      "  - {name: c, convolution: {image: 2, channels: [2, 2], kernel: 1, shared_weights: true}, then: [bias]}\n";
  const Model model = model_of(convolutions(layers, "parameters: 16\nmacs: 144"));
  EXPECT_EQ(model.parameters(), 4);
  EXPECT_EQ(model.layers[0].frozen, (std::vector<std::int64_t>{4, 2, 2}));
  EXPECT_EQ(model.layers[1].frozen, (std::vector<std::int64_t>{2, 2}));
  EXPECT_TRUE(model.layers[2].tensors.empty());
  EXPECT_EQ(
      problem_of(convolutions("  - {name: a, convolution: {image: 4, channels: [2, 2], kernel: 1}, frozen: norms}\n",
                              "parameters: 4\nmacs: 64")),
      "layers[0].frozen: `then` has no batch_norm whose parameters this would keep from learning");
}

}  // namespace
}  // namespace tandem
