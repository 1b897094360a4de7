#include "scenarios/model/layer_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <string>

#include "strategies/model/lora.h"

namespace tandem {
namespace {

constexpr int kMostPasses = 64;
constexpr std::int64_t kMostKernel = 255;
constexpr std::int64_t kMostExperts = 65536;
constexpr double kMostHost_s = 10;

bool is_norm(Pointwise operation) {
  return operation == Pointwise::batch_norm || operation == Pointwise::layer_norm || operation == Pointwise::rms_norm;
}

class LayerReader {
 public:
  LayerReader(const YamlReader& map, const ModelSizes& sizes) : map_(map), sizes_(sizes) {}

  Layer read() {
    layer_.name = map_.required("name").text();
    map_.exactly_one_of({"gemm", "elementwise", "convolution", "dense", "embedding", "dispatch", "combine"});
    if (const YamlReader gemm = map_.optional("gemm")) layer_.gemm = read_gemm(gemm);
    if (const YamlReader elementwise = map_.optional("elementwise")) {
      layer_.elementwise = read_elementwise(elementwise);
    }
    if (const YamlReader convolution = map_.optional("convolution")) read_convolution(convolution);
    if (const YamlReader dense = map_.optional("dense")) read_dense(dense);
    if (const YamlReader embedding = map_.optional("embedding")) read_embedding(embedding);
    if (const YamlReader routing = map_.optional("dispatch")) read_routing(routing, Layer::Routing::Way::dispatch);
    if (const YamlReader routing = map_.optional("combine")) read_routing(routing, Layer::Routing::Way::combine);
    read_frozen();
    read_then();
    read_parameters();
    if (layer_.is_frozen) freeze(layer_);
    check_frozen();
    read_split();
    return std::move(layer_);
  }

 private:
  std::int64_t size(const YamlReader& value, std::int64_t otherwise = 1) const {
    return sizes_.read(value, 1, kMostModelElements, otherwise);
  }

  // Returns a product of sizes, or 1 with a message where it is larger than any model's.
  std::int64_t product(const YamlReader& at, std::initializer_list<std::int64_t> sizes) const {
    double exact = 1;
    for (const std::int64_t size : sizes) exact *= static_cast<double>(size);
    if (exact > static_cast<double>(kMostModelElements)) {
      at.error(fmt::format("has {:.4g} elements; at most {} are possible", exact, kMostModelElements));
      return 1;
    }
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies());
  }

  Layer::Gemm read_gemm(const YamlReader& map) const {
    Layer::Gemm gemm;
    gemm.rows = size(map.required("rows"));
    gemm.columns = size(map.required("columns"));
    gemm.depth = size(map.required("depth"));
    gemm.count = size(map.optional("count"));
    gemm.input_elements = size(map.optional("input"), gemm.rows * gemm.depth);
    gemm.batched = map.optional("batched").boolean(false);
    const YamlReader sharing = map.optional("sharing");
    gemm.sharing = size(sharing);
    if (gemm.count % gemm.sharing != 0) {
      sharing.error(fmt::format("{} products cannot share in groups of {}", gemm.count, gemm.sharing));
      gemm.sharing = 1;
    }
    if (gemm.count > 1 && !gemm.batched && map.optional("count").present()) {
      map.optional("count").error("is for batched products; give the rows of all of them instead");
    }
    return gemm;
  }

  Layer::Elementwise read_elementwise(const YamlReader& map) const {
    Layer::Elementwise elementwise;
    elementwise.elements = size(map.required("elements"));
    // A single pass would read or write nothing useful: an op takes two or three.
    elementwise.forward_passes = map.required("forward").integer(2, kMostPasses, 2);
    elementwise.backward_passes = map.required("backward").integer(2, kMostPasses, 2);
    return elementwise;
  }

  // A list of two sizes, or one for both.
  std::pair<std::int64_t, std::int64_t> pair_of(const YamlReader& value, const char* what, bool one_for_both) const {
    if (one_for_both && !value.is_list()) {
      const std::int64_t both = size(value);
      return {both, both};
    }
    const std::vector<YamlReader> list = value.list();
    if (list.size() != 2) {
      if (value.is_list()) value.error(fmt::format("needs {}, found {} of them", what, list.size()));
      return {1, 1};
    }
    return {size(list[0]), size(list[1])};
  }

  void read_convolution(const YamlReader& map) {
    Layer::Convolution convolution;
    read_image(map.required("image"), convolution);
    std::tie(convolution.in_channels, convolution.out_channels) =
        pair_of(map.required("channels"), "[input channels, output channels]", false);
    convolution.kernel = sizes_.read(map.required("kernel"), 1, kMostKernel, 1);
    convolution.stride = sizes_.read(map.optional("stride"), 1, kMostKernel, 1);
    const YamlReader groups = map.optional("groups");
    convolution.groups = size(groups);
    if (convolution.in_channels % convolution.groups != 0 || convolution.out_channels % convolution.groups != 0) {
      groups.error(fmt::format("{} groups do not divide {} and {} channels", convolution.groups,
                               convolution.in_channels, convolution.out_channels));
      convolution.groups = 1;
    }
    layer_.convolution = convolution;
    layer_.gemm = convolution.as_gemm();
    has_others_weights_ = map.optional("shared_weights").boolean(false);
    if (!has_others_weights_) layer_.tensors.push_back(layer_.gemm->depth * layer_.gemm->columns);
  }

  void read_image(const YamlReader& image, Layer::Convolution& convolution) const {
    const std::vector<YamlReader> sides = image.is_list() ? image.list() : std::vector<YamlReader>{};
    if (sides.size() == 3) {
      convolution.image_depth = size(sides[0]);
      convolution.height = size(sides[1]);
      convolution.width = size(sides[2]);
      return;
    }
    std::tie(convolution.height, convolution.width) = pair_of(image, "[height, width] or [depth, height, width]", true);
  }

  void read_dense(const YamlReader& map) {
    Layer::Gemm gemm;
    gemm.rows = size(map.required("rows"));
    gemm.depth = size(map.required("inputs"));
    gemm.columns = size(map.required("outputs"));
    gemm.input_elements = gemm.rows * gemm.depth;
    gemm.experts = gemm.all_experts = sizes_.read(map.optional("experts"), 1, kMostExperts, 1);
    layer_.gemm = gemm;
    // Weights that belong to another layer, such as the word embeddings in a decoder.
    layer_.shared_weights = map.optional("shared_weights").boolean(false);
    if (!layer_.shared_weights) layer_.tensors.push_back(product(map, {gemm.experts, gemm.depth, gemm.columns}));
  }

  void read_embedding(const YamlReader& map) {
    layer_.embedding = Layer::Embedding{.rows = size(map.required("rows")),
                                        .columns = size(map.required("columns")),
                                        .entries = size(map.required("entries"))};
    layer_.tensors.push_back(product(map, {layer_.embedding->entries, layer_.embedding->columns}));
  }

  // Every copied row is read once and written once.
  void read_routing(const YamlReader& map, Layer::Routing::Way way) {
    const Layer::Routing routing{.way = way,
                                 .rows = size(map.required("rows")),
                                 .columns = size(map.required("columns")),
                                 .used = sizes_.read(map.required("used"), 1, kMostExperts, 1)};
    layer_.routing = routing;
    layer_.elementwise = Layer::Elementwise{.elements = product(map, {routing.used, routing.rows, routing.columns}),
                                            .forward_passes = 2,
                                            .backward_passes = 2};
  }

  void read_then() {
    const YamlReader then = map_.optional("then");
    if (!then) return;
    for (const YamlReader& operation : then.list()) layer_.then.push_back(read_operation(operation));
    const bool is_old_form = map_.has("elementwise");
    if (is_old_form) then.error("element-wise work states its own passes; `then` is for what follows another layer");
    if (is_old_form) return;
    const std::int64_t columns = layer_.embedding     ? layer_.embedding->columns
                                 : layer_.convolution ? layer_.convolution->out_channels
                                 : layer_.routing     ? layer_.routing->columns
                                 : layer_.gemm        ? layer_.gemm->columns
                                                      : 0;
    const YamlReader norm_size = map_.optional("norm_size");
    const std::int64_t norm_columns = size(norm_size, columns);
    if (norm_size && std::none_of(layer_.then.begin(), layer_.then.end(), is_norm)) {
      norm_size.error("is for batch_norm, layer_norm and rms_norm, and `then` has none of them");
    }
    for (const Pointwise operation : layer_.then) {
      const bool is_scaled = operation == Pointwise::bias || operation == Pointwise::rms_norm;
      const int tensors = is_scaled ? 1 : is_norm(operation) ? 2 : 0;
      const std::int64_t biases = layer_.gemm ? layer_.gemm->experts * columns : columns;
      const bool is_frozen = layer_.has_frozen_norm && operation == Pointwise::batch_norm;
      std::vector<std::int64_t>& parameters = is_frozen ? layer_.frozen : layer_.tensors;
      if (has_others_weights_) continue;
      parameters.insert(parameters.end(), static_cast<std::size_t>(tensors),
                        operation == Pointwise::bias ? biases : norm_columns);
    }
  }

  // Before `then` is read, which has parameters, too.
  void read_frozen() {
    enum class What : std::uint8_t { nothing, norms, all };
    const What what = map_.optional("frozen").one_of<What>({{"norms", What::norms}, {"all", What::all}}, What::nothing);
    layer_.has_frozen_norm = what != What::nothing;
    layer_.is_frozen = what == What::all;
  }

  void check_frozen() const {
    const bool has_norm = std::ranges::count(layer_.then, Pointwise::batch_norm) > 0;
    if (!layer_.has_frozen_norm || layer_.is_frozen || has_norm) return;
    map_.optional("frozen").error("`then` has no batch_norm whose parameters this would keep from learning");
  }

  static Pointwise read_operation(const YamlReader& operation) {
    return operation.one_of<Pointwise>({{"bias", Pointwise::bias},
                                        {"batch_norm", Pointwise::batch_norm},
                                        {"relu", Pointwise::relu},
                                        {"residual", Pointwise::residual},
                                        {"gelu", Pointwise::gelu},
                                        {"dropout", Pointwise::dropout},
                                        {"layer_norm", Pointwise::layer_norm},
                                        {"scale", Pointwise::scale},
                                        {"mask", Pointwise::mask},
                                        {"softmax", Pointwise::softmax},
                                        {"transpose", Pointwise::transpose},
                                        {"cross_entropy", Pointwise::cross_entropy},
                                        {"rms_norm", Pointwise::rms_norm},
                                        {"gate", Pointwise::gate},
                                        {"rotary", Pointwise::rotary}});
  }

  // Products and element-wise layers state their parameters; the other forms imply them.
  void read_parameters() {
    const YamlReader parameters = map_.optional("parameters");
    if (!parameters) return;
    const std::int64_t stated = sizes_.read(parameters, 0, kMostModelElements, 0);
    if (layer_.convolution || layer_.embedding || layer_.routing || map_.has("dense")) {
      parameters.error("follows from the layer's sizes and from `then`; leave it out");
    } else if (layer_.gemm && layer_.gemm->batched && stated > 0) {
      parameters.error("a batched product has two operands of the example, and no parameters");
    } else if (stated > 0) {
      layer_.tensors = {stated};
    }
  }

  void read_split() {
    const YamlReader split = map_.optional("split");
    if (!split) return;
    layer_.split = split.one_of<Layer::Split>({{"columns", Layer::Split::columns},
                                               {"rows", Layer::Split::rows},
                                               {"count", Layer::Split::count},
                                               {"entries", Layer::Split::entries}},
                                              Layer::Split::none);
    const bool is_batched = layer_.gemm && layer_.gemm->batched;
    const bool fits = layer_.split == Layer::Split::entries ? layer_.embedding.has_value()
                      : layer_.split == Layer::Split::count ? is_batched
                                                            : map_.has("dense");
    if (fits) return;
    split.error(layer_.split == Layer::Split::entries ? "'entries' is for an embedding"
                : layer_.split == Layer::Split::count ? "'count' is for batched products"
                                                      : "'columns' and 'rows' are for dense layers");
    layer_.split = Layer::Split::none;
  }

  YamlReader map_;
  const ModelSizes& sizes_;
  Layer layer_;
  bool has_others_weights_ = false;
};

// Between layers that are split by columns and the one that is split by rows, every device has only its part of the
// activations, so every layer must say how it works on such a part. Neighbouring layers that are split by columns share
// an input.
class SplitChecker {
 public:
  void check(const YamlReader& reader, const Layer& layer) {
    const bool needs_part = layer.split == Layer::Split::rows || layer.split == Layer::Split::count;
    const bool needs_whole = layer.split == Layer::Split::none || layer.split == Layer::Split::entries ||
                             (layer.split == Layer::Split::columns && before_ != Layer::Split::columns);
    if (needs_part && !is_open_) reader.error("is split by rows or count, and no layer before it by columns");
    if (needs_whole && is_open_) {
      reader.error(
          "is between a layer that is split by columns and one that is split by rows; it needs 'rows' or 'count'");
    }
    const bool ends_in_loss = std::count(layer.then.begin(), layer.then.end(), Pointwise::cross_entropy) > 0;
    is_open_ = (layer.split == Layer::Split::columns && !ends_in_loss) || layer.split == Layer::Split::count;
    before_ = ends_in_loss ? Layer::Split::none : layer.split;
  }
  void finish(const YamlReader& list) const {
    if (is_open_) list.error("ends with layers that are split by columns, and none by rows after them");
  }

 private:
  bool is_open_ = false;
  Layer::Split before_ = Layer::Split::none;
};

void read_group(const YamlReader& map, const ModelSizes& sizes, std::vector<Layer>& layers) {
  const std::string name = map.required("name").text();
  const auto repeat = sizes.read(map.required("repeat"), 1, 10000, 1);
  const auto first = sizes.read(map.optional("first"), 0, 10000, 0);
  const std::vector<Layer> group = read_model_layers(map.required("layers"), sizes);
  for (std::int64_t i = first; i < first + repeat; ++i) {
    for (Layer layer : group) {
      layer.name = fmt::format("{}.{}.{}", name, i, layer.name);
      layer.block = Layer::Block{.group = name, .copy = i};
      layers.push_back(std::move(layer));
    }
  }
}

// Rows go to the experts of the next layer, and come back from those of the layer before.
void find_experts(const std::vector<YamlReader>& readers, std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].routing) continue;
    const bool sends = layers[i].routing->way == Layer::Routing::Way::dispatch;
    const bool has_neighbour = sends ? i + 1 < layers.size() : i > 0;
    if (!has_neighbour) continue;
    const Layer& neighbour = layers[sends ? i + 1 : i - 1];
    if (!neighbour.gemm) continue;
    Layer::Routing& routing = *layers[i].routing;
    routing.experts = neighbour.gemm->experts;
    if (routing.used <= routing.experts || readers.size() != layers.size()) continue;
    readers[i].error(
        fmt::format("rows use {} experts, and '{}' has {}", routing.used, neighbour.name, routing.experts));
  }
}

// Returns whether a layer of attention makes or reads scores, judging by the previous layer.
Layer::Scores scores_of(const Layer& layer, const std::vector<Layer>& before) {
  if (!layer.gemm || !layer.gemm->batched) return Layer::Scores::none;
  if (std::count(layer.then.begin(), layer.then.end(), Pointwise::softmax) > 0) return Layer::Scores::made;
  const bool follows = !before.empty() && before.back().scores == Layer::Scores::made;
  return follows ? Layer::Scores::read : Layer::Scores::none;
}

// Queries are the rows. Keys are the columns of scores, and the depth of the product that reads them; with fewer keys
// than queries, each query sees a window of them, and with more, the last ones are seen by none.
void read_causal(const YamlReader& causal, Layer& layer) {
  if (!causal.boolean(false)) return;
  if (layer.scores == Layer::Scores::none) {
    causal.error("is for the two products of attention: a batched one with softmax after it, and the next one");
    return;
  }
  Layer::Gemm& gemm = *layer.gemm;
  const auto queries = static_cast<double>(gemm.rows);
  const auto keys = static_cast<double>(layer.scores == Layer::Scores::made ? gemm.columns : gemm.depth);
  gemm.attended = keys <= queries ? 1 - (keys - 1) / (2 * queries) : (queries + 1) / (2 * keys);
}

}  // namespace

std::vector<Layer> read_model_layers(const YamlReader& list, const ModelSizes& sizes) {
  std::vector<Layer> layers;
  SplitChecker splits;
  for (const YamlReader& layer : list.list()) {
    if (layer.is_map() && layer.has("layers")) {
      splits.finish(layer);
      read_group(layer, sizes, layers);
      splits = {};
    } else {
      Layer read = LayerReader(layer, sizes).read();
      read.scores = scores_of(read, layers);
      read_causal(layer.optional("gemm").optional("causal"), read);
      layers.push_back(std::move(read));
      splits.check(layer, layers.back());
    }
  }
  splits.finish(list);
  find_experts(list.list(), layers);
  return layers;
}

Stack read_stack(const YamlReader& map, Stack stack) {
  if (!map) return stack;
  stack.layout = map.optional("layout").one_of<Layout>({{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}}, stack.layout);
  stack.fusion = map.optional("fusion").one_of(fusions(), stack.fusion);
  stack.attention = map.optional("attention")
                        .one_of<AttentionKernels>({{"separate", AttentionKernels::separate},
                                                   {"fused_softmax", AttentionKernels::fused_softmax},
                                                   {"flash", AttentionKernels::flash},
                                                   {"flash_1", AttentionKernels::flash_1}},
                                                  stack.attention);
  stack.accumulation =
      map.optional("accumulation")
          .one_of<Accumulation>({{"separate", Accumulation::separate}, {"in_products", Accumulation::in_products}},
                                stack.accumulation);
  stack.loss = map.optional("loss").one_of<Loss>({{"separate", Loss::separate}, {"fused", Loss::fused}}, stack.loss);
  stack.experts = map.optional("experts").one_of<ExpertKernels>(
      {{"separate", ExpertKernels::separate}, {"grouped", ExpertKernels::grouped}, {"fused", ExpertKernels::fused}},
      stack.experts);
  stack.block_host_s = map.optional("block_host_time")
                           .quantity(Dimension::seconds, {.otherwise = stack.block_host_s, .most = kMostHost_s});
  stack.is_stated = true;
  return stack;
}

}  // namespace tandem
