// Models: their totals are the published ones, and files are read strictly.
#include "scenarios/model.h"

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
  for (const Layer& layer : model.layers) convolutions += layer.gemm && layer.name != "fc" ? 1 : 0;
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

TEST(Models, ConvolutionsChainTheirShapes) {
  // A convolution's input is the output of the layer before it: no gap in the trunk of ResNet-50.
  const Model model = packaged("resnet50");
  for (std::size_t i = 1; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (layer.elementwise && layer.name.find("add") == std::string::npos && layer.name != "maxpool" &&
        layer.name != "avgpool") {
      EXPECT_EQ(layer.elementwise->elements, model.layers[i - 1].output_elements()) << layer.name;
    }
  }
}

TEST(Models, EveryPackagedModelIsRead) {
  const auto names = packaged_models();
  EXPECT_EQ(names, (std::vector<std::string>{"bert_large", "layers_small", "resnet50"}));
  for (const std::string& name : names) EXPECT_EQ(packaged(name).name, name);
}

TEST(Models, RepeatedLayersAreNamedByTheirRound) {
  const Model model = read_model(TANDEM_SOURCE_DIR "/tests/scenarios/good/files/model.yaml");
  ASSERT_EQ(model.layers.size(), 5u);
  EXPECT_EQ(model.layers[3].name, "block.1.scores");
  EXPECT_EQ(model.parameters(), 20 + 2 * 8);
  EXPECT_EQ(model.forward_macs(), 2 * 4 * 4 + 2 * (2 * 2 * 2 * 2));
}

}  // namespace
}  // namespace tandem
