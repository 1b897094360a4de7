#include "scenarios/workloads/computed/flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/parallel/layer_division.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Kind = LayerFlow::Kind;

bool has(const Layer& layer, Pointwise operation) {
  return std::ranges::count(layer.then, operation) > 0;
}

bool is_dense(const Layer& layer) {
  return layer.gemm && !layer.gemm->batched && !layer.convolution;
}

// What stops the derivation, as a message about a layer.
struct FlowError {
  std::string message;
};

class FlowMaker {
 public:
  explicit FlowMaker(const Model& model) : model_(model), flows_(model.layers.size()) {}

  std::vector<LayerFlow> make() {
    for (std::size_t i = 0; i < flows_.size(); ++i) add(static_cast<int>(i));
    const Layer& last = model_.layers.back();
    if (!has(last, Pointwise::cross_entropy)) fail("it does not end with a loss (cross_entropy)");
    return std::move(flows_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw FlowError{message}; }
  [[noreturn]] void fail(int index, const std::string& message) const {
    fail(fmt::format("layer '{}' {}", layer(index).name, message));
  }
  const Layer& layer(int index) const { return model_.layers[static_cast<std::size_t>(index)]; }
  LayerFlow& flow(int index) { return flows_[static_cast<std::size_t>(index)]; }

  void add(int index) {
    const Layer& one = layer(index);
    if (one.convolution) fail(index, "is a convolution");
    if (one.elementwise) fail(index, "is element-wise work that says only what it moves");
    if (has(one, Pointwise::batch_norm)) fail(index, "has a batch_norm");
    check_parameters(index);
    if (one.embedding) return add_table(index);
    if (one.gemm->rows != rows_of_first()) fail(index, "has another number of rows than the first layer");
    if (std::ranges::count(one.then, Pointwise::residual) > 1) fail(index, "adds more than the input of its sublayer");
    if (has(one, Pointwise::residual)) flow(index).shortcut = stream_;
    if (one.scores == Layer::Scores::made) return add_scores(index);
    if (one.gemm->batched) return add_mixed(index);
    add_dense(index);
  }

  std::int64_t rows_of_first() const {
    const Layer& first = model_.layers.front();
    return first.embedding ? first.embedding->rows : first.gemm->rows;
  }

  // Norms and biases are of all columns.
  void check_parameters(int index) const {
    const Layer& one = layer(index);
    const std::int64_t columns = one.embedding ? one.embedding->columns : one.gemm->columns;
    std::int64_t expected = one.embedding ? one.embedding->entries * columns : 0;
    if (is_dense(one) && !one.shared_weights) expected = one.gemm->experts * one.gemm->depth * columns;
    for (const Pointwise operation : one.then) {
      if (operation == Pointwise::bias || operation == Pointwise::rms_norm) expected += columns;
      if (operation == Pointwise::layer_norm) expected += 2 * columns;
    }
    if (one.parameters() != expected) fail(index, "has norms of a part of its columns");
  }

  // The rows after those of the words belong to positions.
  void add_table(int index) {
    if (index > 0) fail(index, "is an embedding that is not the first layer");
    const Layer& last = model_.layers.back();
    const auto sums = std::ranges::count(layer(index).then, Pointwise::residual);
    if (sums > 1) fail(index, "adds more than words and positions");
    const Layer::Embedding& table = *layer(index).embedding;
    flow(index).kind = Kind::table;
    flow(index).words = sums == 0 ? table.entries : std::min(table.entries, last.gemm ? last.gemm->columns : 0);
    flow(index).has_positions = sums > 0;
    if (sums > 0 && table.entries - flow(index).words < table.rows) fail(index, "has no row for each position");
    if (last.gemm && last.gemm->columns > flow(index).words) fail(index, "has fewer rows than the loss has classes");
    stream_ = source_ = index;
  }

  // Layers that share an input follow each other; one that is split otherwise, or has an activation, ends them.
  void add_dense(int index) {
    const Layer& one = layer(index);
    LayerFlow& mine = flow(index);
    if (has(one, Pointwise::softmax)) fail(index, "has a softmax outside attention");
    if (has_experts(one)) fail(index, "has experts");
    const bool shares = index > 0 && flow_shares_input(index);
    mine.input = shares ? flow(index - 1).input : source_;
    if (has(one, Pointwise::gate)) {
      if (!shares) fail(index, "has a gate, and no layer beside it");
      mine.gate = index - 1;
    }
    check_width(index);
    if (one.shared_weights && (layer(0).embedding == std::nullopt || !has(one, Pointwise::cross_entropy))) {
      fail(index, "shares weights otherwise than a last layer with an embedding");
    }
    source_ = index;
    if (has(one, Pointwise::residual)) stream_ = index;
  }

  bool flow_shares_input(int index) {
    const Layer &one = layer(index), &before = layer(index - 1);
    if (!is_dense(before) || one.split != Layer::Split::columns || before.split != Layer::Split::columns) return false;
    const bool has_activation = has(before, Pointwise::gelu) || has(before, Pointwise::relu) ||
                                has(before, Pointwise::gate) || has(before, Pointwise::softmax);
    return !has_activation && one.gemm->depth == before.gemm->depth;
  }

  void check_width(int index) const {
    const LayerFlow& mine = flows_[static_cast<std::size_t>(index)];
    if (mine.input == kNoLayer) return;
    const Layer& from = layer(mine.input);
    const std::int64_t columns = output_columns(from);
    if (columns == layer(index).gemm->depth) return;
    fail(index,
         fmt::format("has {} inputs, and layer '{}' before it gives {}", layer(index).gemm->depth, from.name, columns));
  }

  // The dense layers just before the scores become queries, keys and values.
  void add_scores(int index) {
    const Layer::Gemm& gemm = *layer(index).gemm;
    const Heads heads{.count = gemm.count, .sharing = gemm.sharing, .width = gemm.depth};
    if (gemm.rows != gemm.columns) fail(index, "does not attend to as many tokens as there are");
    const std::int64_t all = (heads.count + 2 * heads.groups()) * heads.width;
    int first = index;
    std::int64_t columns = 0;
    while (first > 0 && columns < all && is_dense(layer(first - 1))) columns += layer(--first).gemm->columns;
    const int layers = index - first;
    if (columns != all || (layers != 1 && layers != 3)) {
      fail(index, fmt::format("needs {} columns of queries, keys and values before it, in one layer or in three", all));
    }
    for (int i = first; i < index; ++i) {
      LayerFlow& projection = flow(i);
      projection.kind = Kind::projection;
      projection.heads = heads;
      projection.has_queries = layers == 1 || i == first;
      projection.has_keys = layers == 1 || i == first + 1;
      projection.has_values = layers == 1 || i == first + 2;
    }
    flow(index) = {.kind = Kind::scores, .input = first, .heads = heads};
    source_ = index;
  }

  void add_mixed(int index) {
    const Layer::Gemm& gemm = *layer(index).gemm;
    const bool follows = index > 0 && flow(index - 1).kind == Kind::scores;
    if (!follows) fail(index, "is a batched product outside attention");
    const Heads& heads = *flow(index - 1).heads;
    if (gemm.columns != heads.width) fail(index, "has values of another width than keys");
    if (has(layer(index), Pointwise::gate)) fail(index, "has a gate on attention");
    flow(index) = {.kind = Kind::mixed, .input = index - 1, .heads = heads};
    source_ = index;
  }

  const Model& model_;
  std::vector<LayerFlow> flows_;
  int source_ = kNoLayer;  // the layer whose output comes next
  int stream_ = kNoLayer;  // what the next residual adds
};

}  // namespace

std::int64_t output_columns(const Layer& layer) {
  if (layer.embedding) return layer.embedding->columns;
  return layer.gemm->batched ? layer.gemm->count * layer.gemm->columns : layer.gemm->columns;
}

std::vector<LayerFlow> flow_of(const Model& model) {
  try {
    return FlowMaker(model).make();
  } catch (const FlowError& error) {
    TANDEM_UNREACHABLE(error.message);
  }
}

std::optional<std::string> flow_problem(const Model& model) {
  try {
    FlowMaker(model).make();
    return std::nullopt;
  } catch (const FlowError& error) {
    return fmt::format("model '{}' cannot be computed: {}", model.name, error.message);
  }
}

}  // namespace tandem
