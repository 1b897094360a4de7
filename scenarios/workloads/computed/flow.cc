#include "scenarios/workloads/computed/flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/parallel/layout/layer_division.h"
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

bool is_dispatch(const Layer& layer) {
  return layer.routing && layer.routing->way == Layer::Routing::Way::dispatch;
}

bool is_combination(const Layer& layer) {
  return layer.routing && layer.routing->way == Layer::Routing::Way::combine;
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
    if (!is_dense(last) || !has(last, Pointwise::cross_entropy)) fail("it does not end with a loss (cross_entropy)");
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
    if (one.elementwise && !one.routing) fail(index, "is element-wise work that says only what it moves");
    if (has(one, Pointwise::batch_norm)) fail(index, "has a batch_norm");
    if (one.shared_weights && (!layer(0).embedding || !has(one, Pointwise::cross_entropy))) {
      fail(index, "shares weights otherwise than a last layer with an embedding");
    }
    check_parameters(index);
    if (one.embedding) return add_table(index);
    check_order(index);
    if (has_experts(one)) return add_experts(index);
    if (token_rows(one) != rows_of_first()) fail(index, "has another number of rows than the first layer");
    if (std::ranges::count(one.then, Pointwise::residual) > 1) fail(index, "adds more than the input of its sublayer");
    if (has(one, Pointwise::residual)) flow(index).shortcut = stream_;
    if (one.scores == Layer::Scores::made) return add_scores(index);
    if (one.routing) return is_combination(one) ? add_combination(index) : add_dispatch(index);
    if (one.gemm->batched) return add_mixed(index);
    add_dense(index);
  }

  // Experts follow rows that are sent to them, and what they make is combined.
  void check_order(int index) {
    const Layer& one = layer(index);
    const Kind before = index == 0 ? Kind::table : flow(index - 1).kind;
    if (before == Kind::dispatch && !has_experts(one)) fail(index, "follows a `dispatch`, and has no experts");
    if (before == Kind::experts && !has_experts(one) && !is_combination(one)) {
      fail(index, "follows experts, whose results nothing combines");
    }
  }

  std::int64_t rows_of_first() const { return token_rows(model_.layers.front()); }

  // Norms and biases are of all columns.
  void check_parameters(int index) const {
    const Layer& one = layer(index);
    const std::int64_t columns = one.gemm ? one.gemm->columns : output_columns(one);
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
    if (has(one, Pointwise::softmax)) return add_router(index);
    const bool shares = index > 0 && flow_shares_input(index);
    mine.input = shares ? flow(index - 1).input : source_;
    if (has(one, Pointwise::gate)) {
      if (!shares) fail(index, "has a gate, and no layer beside it");
      mine.gate = index - 1;
    }
    check_width(index);
    source_ = index;
    if (has(one, Pointwise::residual)) stream_ = index;
  }

  // The next layers read its input, too.
  void add_router(int index) {
    const Layer& one = layer(index);
    const bool is_followed = index + 1 < static_cast<int>(flows_.size()) && is_dispatch(layer(index + 1));
    if (!is_followed) fail(index, "has a softmax outside attention, and is no router before a `dispatch`");
    const bool ends_in_softmax = one.then.back() == Pointwise::softmax && one.then.size() <= 2;
    const bool has_others = one.then.size() == 2 && one.then.front() != Pointwise::bias;
    if (!ends_in_softmax || has_others || one.split != Layer::Split::none) {
      fail(index, "is a router, which has a softmax, perhaps after a bias, and is not split");
    }
    flow(index).input = source_;
    check_width(index);
  }

  void add_dispatch(int index) {
    const Layer::Routing& routing = *layer(index).routing;
    const bool follows = index > 0 && is_dense(layer(index - 1)) && has(layer(index - 1), Pointwise::softmax);
    if (!follows) fail(index, "follows no router, which ends with a softmax");
    if (!layer(index).then.empty()) fail(index, "has operations on rows that go to experts");
    if (routing.used > layer(index - 1).gemm->columns) fail(index, "uses more experts than its router knows");
    if (source_ == kNoLayer || routing.columns != output_columns(layer(source_))) {
      fail(index, fmt::format("does not have the {} columns of its router's input", layer(index - 1).gemm->depth));
    }
    flow(index) = {.kind = Kind::dispatch, .input = source_, .router = index - 1};
    router_ = index - 1;
    source_ = index;
  }

  void add_experts(int index) {
    const Layer& one = layer(index);
    const Kind before = index == 0 ? Kind::table : flow(index - 1).kind;
    if (before != Kind::dispatch && before != Kind::experts) fail(index, "has experts, and no `dispatch` before it");
    const Layer::Routing& routing = *layer(router_ + 1).routing;
    if (one.gemm->experts != layer(router_).gemm->columns) fail(index, "has other experts than its router knows");
    if (one.gemm->rows != routing.used * routing.rows) fail(index, "has other rows than go to its experts");
    for (const Pointwise operation : one.then) {
      const bool fits = operation == Pointwise::relu || operation == Pointwise::gelu || operation == Pointwise::gate;
      if (!fits) fail(index, "has operations on the rows of experts that are no activation");
    }
    LayerFlow& mine = flow(index);
    const bool shares = before == Kind::experts && flow_shares_input(index);
    mine = {.kind = Kind::experts, .input = shares ? flow(index - 1).input : source_};
    if (has(one, Pointwise::gate)) {
      if (!shares) fail(index, "has a gate, and no layer beside it");
      mine.gate = index - 1;
    }
    check_width(index);
    source_ = index;
  }

  void add_combination(int index) {
    const bool follows = index > 0 && flow(index - 1).kind == Kind::experts;
    if (!follows) fail(index, "combines what no experts before it have made");
    const Layer::Routing &mine = *layer(index).routing, &sent = *layer(router_ + 1).routing;
    if (!layer(index - 1).then.empty()) fail(index - 1, "has operations; those of the last experts follow `combine`");
    if (mine.used != sent.used) fail(index, "combines other rows than were sent");
    if (mine.columns != output_columns(layer(index - 1))) fail(index, "does not have the columns of the experts");
    for (const Pointwise operation : layer(index).then) {
      const bool fits =
          operation != Pointwise::gate && operation != Pointwise::softmax && operation != Pointwise::cross_entropy;
      if (!fits) fail(index, "has a gate, a softmax or a loss");
    }
    check_mixture(index);
    const int shortcut = flow(index).shortcut;
    flow(index) = {.kind = Kind::combine, .input = index - 1, .shortcut = shortcut, .router = router_};
    source_ = index;
    if (has(layer(index), Pointwise::residual)) stream_ = index;
  }

  // Tensor-parallel devices sum what the last layer of experts makes, and gather what the first ones read.
  void check_mixture(int combination) {
    const int dispatch = router_ + 1, last = combination - 1;
    const bool is_split = layer(dispatch + 1).split != Layer::Split::none;
    for (int i = dispatch + 1; i <= last; ++i) {
      const Layer::Split split = layer(i).split;
      const bool fits = !is_split   ? split == Layer::Split::none
                        : i == last ? split == Layer::Split::rows
                                    : split == Layer::Split::columns && flow(i).input == dispatch;
      if (!fits) fail(i, "is split otherwise than experts whose first layers have columns and whose last one has rows");
    }
    for (int i = router_; i < combination; ++i) {
      if (layer(i).block != layer(combination).block) fail(combination, "is in another block than its router");
    }
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
  int router_ = kNoLayer;  // of the experts under way
};

}  // namespace

std::int64_t output_columns(const Layer& layer) {
  if (layer.routing) return layer.routing->columns;
  if (layer.embedding) return layer.embedding->columns;
  return layer.gemm->batched ? layer.gemm->count * layer.gemm->columns : layer.gemm->columns;
}

std::int64_t token_rows(const Layer& layer) {
  if (layer.routing) return layer.routing->rows;
  return layer.embedding ? layer.embedding->rows : layer.gemm->rows;
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
