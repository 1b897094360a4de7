#include "scenarios/export/transformer_of.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace tandem {
namespace {

using LayersOfBlock = std::span<const Layer>;

bool is_followed_by(const Layer& layer, Pointwise operation) {
  return std::ranges::count(layer.then, operation) > 0;
}

bool any_followed_by(LayersOfBlock layers, Pointwise operation) {
  return std::ranges::any_of(layers, [&](const Layer& layer) { return is_followed_by(layer, operation); });
}

// "block.3.query" -> "query"
std::string_view name_in_block(const Layer& layer) {
  const std::string_view name = layer.name;
  return name.substr(name.rfind('.') + 1);
}

bool is_dense(const Layer& layer) {
  return layer.gemm && !layer.gemm->batched && !layer.convolution;
}

// The layers of one block, in order.
class BlockReader {
 public:
  explicit BlockReader(LayersOfBlock layers) : layers_(layers) {
    scores_ = place_of([](const Layer& layer) { return layer.scores == Layer::Scores::made; });
    context_ = place_of([](const Layer& layer) { return layer.scores == Layer::Scores::read; });
  }

  std::optional<BlockSpec> read(std::int64_t tokens) const {
    if (scores_ == 0 || context_ <= scores_ || context_ + 1 >= layers_.size()) return std::nullopt;
    BlockSpec block;
    block.attention = attention(tokens);
    block.feed_forward = feed_forward();
    return block;
  }

  std::int64_t hidden() const { return layers_[context_ + 1].gemm ? layers_[context_ + 1].gemm->columns : 0; }
  bool is_causal() const { return layers_[scores_].gemm->attended < 1; }
  bool predicts() const {
    return std::ranges::any_of(layers_, [](const Layer& layer) { return name_in_block(layer) == "predictor"; });
  }

 private:
  // Returns the first place of such a layer; 0, which is none of those that are looked for, where there is none.
  template <typename Is>
  std::size_t place_of(Is is) const {
    const auto found = std::ranges::find_if(layers_, is);
    return found == layers_.end() ? 0 : static_cast<std::size_t>(found - layers_.begin());
  }

  const Layer* named(std::string_view name) const {
    const auto found = std::ranges::find(layers_, name, name_in_block);
    return found == layers_.end() ? nullptr : &*found;
  }

  AttentionSpec attention(std::int64_t tokens) const {
    const LayersOfBlock before = layers_.first(scores_);
    const Layer::Gemm& scores = *layers_[scores_].gemm;
    AttentionSpec spec;
    spec.heads = scores.count;
    spec.key_heads = scores.count / std::max<std::int64_t>(1, scores.sharing);
    spec.size = scores.depth;
    spec.value_size = layers_[context_].gemm->columns;
    if (scores.columns < tokens) spec.window = scores.columns;
    spec.query_bias = spec.key_bias = spec.value_bias = any_followed_by(before, Pointwise::bias);
    spec.output_bias = is_followed_by(layers_[context_ + 1], Pointwise::bias);
    spec.rotary = any_followed_by(before, Pointwise::rotary);
    const Layer *const down = named("key_value_down"), *const query_down = named("query_down");
    const Layer* const key_value = named("key_value");
    if (down != nullptr && down->gemm && key_value != nullptr && key_value->gemm) {
      AttentionSpec::Latent latent;
      latent.query_rank = query_down != nullptr && query_down->gemm ? query_down->gemm->columns : 0;
      latent.rank = key_value->gemm->depth;
      latent.rotary = down->gemm->columns - latent.rank;
      spec.latent = latent;
    } else if (any_followed_by(before, Pointwise::rms_norm) || any_followed_by(before, Pointwise::layer_norm)) {
      spec.head_norm = AttentionSpec::HeadNorm::per_head;
    }
    return spec;
  }

  FeedForwardSpec feed_forward() const {
    const LayersOfBlock after = layers_.subspan(context_ + 2);
    const auto routed = std::ranges::find_if(after, [](const Layer& layer) { return layer.routing.has_value(); });
    FeedForwardSpec spec;
    spec.gated = any_followed_by(after, Pointwise::gate);
    spec.activation = spec.gated                                ? Activation::silu
                      : any_followed_by(after, Pointwise::relu) ? Activation::relu
                                                                : Activation::gelu;
    FeedForwardSpec::Experts experts;
    for (const Layer& layer : after) {
      if (!is_dense(layer)) continue;
      const bool is_up = layer.split == Layer::Split::columns;
      if (has_experts(layer)) {
        if (is_up) experts.width = layer.gemm->columns;
        experts.has_bias = experts.has_bias || is_followed_by(layer, Pointwise::bias);
      } else if (is_followed_by(layer, Pointwise::softmax)) {
        experts.has_router_bias = is_followed_by(layer, Pointwise::bias);
      } else if (is_up) {
        (routed == after.end() ? spec.width : experts.shared_width) = layer.gemm->columns;
        spec.up_bias = is_followed_by(layer, Pointwise::bias);
      }
    }
    if (routed == after.end()) return spec;
    experts.count = routed->routing->experts;
    experts.used = routed->routing->used;
    spec.experts = experts;
    return spec;
  }

  LayersOfBlock layers_;
  std::size_t scores_ = 0, context_ = 0;
};

class TransformerReader {
 public:
  explicit TransformerReader(const Model& model) : model_(model) {}

  std::optional<TransformerSpec> read() {
    const auto& layers = model_.layers;
    if (layers.empty() || !layers.front().embedding || !is_dense(layers.back())) return std::nullopt;
    spec_.name = model_.name;
    spec_.tokens = layers.front().embedding->rows;
    if (!read_blocks()) return std::nullopt;
    const Layer& head = layers.back();
    spec_.vocabulary = head.gemm->columns;
    spec_.more_entries = layers.front().embedding->entries - spec_.vocabulary;
    spec_.tied = head.shared_weights;
    spec_.dropout = any_followed_by(layers, Pointwise::dropout) ? 0.1 : 0;
    return std::move(spec_);
  }

 private:
  bool read_blocks() {
    const LayersOfBlock all = model_.layers;
    for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
      for (end = first + 1; end < all.size() && all[end].block == all[first].block;) ++end;
      if (!all[first].block) continue;
      const BlockReader reader(all.subspan(first, end - first));
      const auto block = reader.read(spec_.tokens);
      if (!block) return false;
      if (reader.predicts()) {
        ++spec_.predictors;
        continue;
      }
      spec_.hidden = reader.hidden();
      spec_.norm = is_followed_by(all[end - 1], Pointwise::rms_norm) ? NormKind::rms : NormKind::layer;
      spec_.is_causal = reader.is_causal();
      spec_.blocks.push_back({.copies = 1, .block = *block});
    }
    return !spec_.blocks.empty();
  }

  const Model& model_;
  TransformerSpec spec_{};
};

}  // namespace

std::optional<TransformerSpec> transformer_of(const Model& model) {
  return TransformerReader(model).read();
}

}  // namespace tandem
