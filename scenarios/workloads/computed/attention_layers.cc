// The two products of attention as layers: the scores, and the values that they mix.
#include <algorithm>
#include <cmath>

#include "engine/layer_ops.h"
#include "scenarios/workloads/computed/attention.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Role = AttentionTensors::Role;

// What both products have in common: an operand by head, and one of keys or values.
class AttentionLayer : public ComputedLayer {
 public:
  AttentionLayer(StageState& state, std::size_t layer, std::shared_ptr<AttentionTensors> attention, Role role)
      : state_(state),
        index_(layer),
        attention_(std::move(attention)),
        role_(role),
        forward_(state.whole(layer).name),
        of_right_(state.whole(layer).name + " weight gradient"),
        of_left_(state.whole(layer).name + " input gradient") {}

  Exchanged operands(Exchange exchange, const Pass& pass) override {
    switch (exchange) {
      case Exchange::keys:
      case Exchange::keys_again:
        return {.whole = attention_->gathered(role_, pass), .part = flat(attention_->matrix(role_, pass))};
      case Exchange::key_gradients:
        return {.whole = attention_->gathered(role_, pass), .part = flat(attention_->gradient(role_, pass))};
      case Exchange::queries_to_heads:
        return attention_->to_heads(Role::queries, attention_->own(Role::queries, pass, false), pass);
      case Exchange::keys_to_heads:
        return attention_->to_heads(role_, attention_->own(role_, pass, false), pass);
      case Exchange::query_gradients_to_tokens:
        return attention_->to_tokens(Role::queries, attention_->gradient(Role::queries, pass), pass);
      case Exchange::key_gradients_to_tokens:
        return attention_->to_tokens(role_, attention_->gradient(role_, pass), pass);
      default:
        TANDEM_UNREACHABLE("an exchange that attention lacks");
    }
  }

 protected:
  static Tensor flat(const Tensor& matrix) { return matrix.flat_slice(0, matrix.element_count()); }
  int number() const { return static_cast<int>(state_.part().first + index_); }
  bool has_parts() const { return attention_->gathers(); }
  void order_tokens(const Pass& pass) const {
    if (has_parts()) attention_->order_tokens(role_, pass);
  }
  void put_heads(Role role, const Pass& pass) const {
    if (attention_->exchanges_heads()) attention_->put_heads(role, attention_->matrix(role, pass), pass);
  }
  void put_gradients_of_tokens(Role role, const Pass& pass) const {
    attention_->put_tokens(role, attention_->own(role, pass, true), pass);
  }

  StageState& state_;
  std::size_t index_;
  std::shared_ptr<AttentionTensors> attention_;
  Role role_;
  Name forward_, of_right_, of_left_;
};

// scores = queries * keys, then softmax and dropout.
class ScoresLayer final : public AttentionLayer {
 public:
  ScoresLayer(StageState& state, std::size_t layer, std::shared_ptr<AttentionTensors> attention)
      : AttentionLayer(state, layer, std::move(attention), Role::keys) {
    const auto& then = state.whole(layer).then;
    is_causal_ = std::ranges::count(then, Pointwise::mask) > 0;
    drops_ = std::ranges::count(then, Pointwise::dropout) > 0 && state.settings().dropout > 0;
    const std::int64_t rows = attention_->heads().count * attention_->tokens();
    weights_ = state.keep(layer, rows, attention_->all_tokens(), state.dtype(), !drops_);
    if (drops_) dropped_ = state.keep(layer, rows, attention_->all_tokens(), state.dtype(), true);
  }

  void launch(Work work, const Pass& pass, const LayerTensors& /*tensors*/) override {
    const Tensor weights = matrices(weights_, pass);
    switch (work) {
      case Work::product:
        put_heads(Role::queries, pass);
        put_heads(Role::keys, pass);
        order_tokens(pass);
        return state_.launch(op::batched_gemm(weights, attention_->matrix(Role::queries, pass),
                                              attention_->whole(Role::keys, pass, false), false, true),
                             forward_);
      case Work::operations:
        state_.launch(op::softmax(weights, weights, settings()));
        if (drops_) state_.launch(dropout(matrices(dropped_, pass), weights, pass));
        return state_.set_output(number(), pass, drops_ ? matrices(dropped_, pass) : weights);
      case Work::operations_gradient: {
        const Tensor gradient = of_scores(pass);
        if (drops_) state_.launch(dropout(gradient, gradient, pass));
        return state_.launch(op::softmax_gradient(gradient, gradient, weights, scale()));
      }
      case Work::product_again:
        return order_tokens(pass);
      case Work::weight_gradient:
        return key_gradient(pass);
      case Work::input_gradient:
        return state_.launch(op::batched_gemm(attention_->gradient(Role::queries, pass), of_scores(pass),
                                              attention_->whole(Role::keys, pass, false)),
                             of_left_);
      case Work::gradients_of_tokens:
        put_gradients_of_tokens(Role::keys, pass);
        return put_gradients_of_tokens(Role::queries, pass);
      default:
        return;
    }
  }

 private:
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(attention_->heads().width)); }
  op::SoftmaxSettings settings() const {
    return {
        .scale = scale(), .queries = is_causal_ ? attention_->tokens() : 0, .first_query = attention_->first_token()};
  }
  Tensor matrices(const Kept& kept, const Pass& pass) const {
    return kept.at(pass).view(0, {pass.examples * attention_->heads().groups(),
                                  attention_->heads().sharing * attention_->tokens(), attention_->all_tokens()});
  }
  Tensor of_scores(const Pass& pass) { return state_.gradient(number(), matrices(weights_, pass)); }
  // With context parallelism the gradients of the keys take the place of the keys, which the input's gradient needs.
  void key_gradient(const Pass& pass) {
    const Tensor keys = attention_->whole(Role::keys, pass, true);
    if (!has_parts()) {
      return state_.launch(
          op::batched_gemm(keys, of_scores(pass), attention_->matrix(Role::queries, pass), true, false), of_right_);
    }
    const Tensor gradients = state_.scratch(StageState::Use::keys, keys.element_count()).view(0, keys.shape());
    state_.launch(op::batched_gemm(gradients, of_scores(pass), attention_->matrix(Role::queries, pass), true, false),
                  of_right_);
    attention_->order_devices(Role::keys, gradients, pass);
  }
  Op dropout(const Tensor& to, const Tensor& from, const Pass& pass) const {
    const std::int64_t heads = attention_->heads().count, tokens = attention_->tokens(), all = attention_->all_tokens();
    const std::int64_t all_heads = state_.whole(index_).gemm->count;
    return op::dropout(
        to, from, state_.settings().dropout, state_.dropout_seed(number(), 0),
        {.first = 0,
         .offset = (pass.first * all_heads + attention_->first_head()) * all * all + attention_->first_token() * all,
         .sizes = {1, heads, tokens, all},
         .strides = {all_heads * all * all, all * all, all, 1}});
  }

  bool is_causal_ = false, drops_ = false;
  Kept weights_{}, dropped_{};
};

// output = scores * values, in rows of tokens again.
class MixedLayer final : public AttentionLayer {
 public:
  MixedLayer(StageState& state, std::size_t layer, std::shared_ptr<AttentionTensors> attention)
      : AttentionLayer(state, layer, std::move(attention), Role::values) {
    const std::int64_t columns = attention_->width_of(Role::queries);
    const int divided = attention_->exchanges_heads() ? state.part().division.context : 1;
    output_ = state.keep(layer, attention_->tokens() / divided, columns * divided, state.dtype(), true);
    const std::int64_t elements = state.part().examples * attention_->tokens() * columns;
    by_head_ = state.device().allocate(state.dtype(), {elements});
    if (divided > 1) of_tokens_ = state.device().allocate(state.dtype(), {elements});
  }

  Exchanged operands(Exchange exchange, const Pass& pass) override {
    if (exchange == Exchange::results_to_tokens) return attention_->to_tokens(Role::queries, by_head(pass), pass);
    if (exchange != Exchange::result_gradients_to_heads) return AttentionLayer::operands(exchange, pass);
    copy_rows(state_.whole_gradient(number(), output_.at(pass)), false, pass);
    return attention_->to_heads(Role::queries, of_tokens(pass), pass);
  }

  void launch(Work work, const Pass& pass, const LayerTensors& /*tensors*/) override {
    const Tensor by_head = this->by_head(pass);
    const Tensor output = output_.at(pass), scores = state_.output(number() - 1, pass);
    switch (work) {
      case Work::product:
        put_heads(Role::values, pass);
        order_tokens(pass);
        return state_.launch(op::batched_gemm(by_head, scores, attention_->whole(Role::values, pass, false)), forward_);
      case Work::operations:
        if (!attention_->exchanges_heads()) copy_rows(output, true, pass);
        return state_.set_output(number(), pass, output);
      case Work::results_of_tokens:
        attention_->put_tokens(Role::queries, of_tokens(pass), pass);
        return copy_rows(output, true, pass);
      case Work::operations_gradient:
        if (attention_->exchanges_heads()) return attention_->put_heads(Role::queries, by_head, pass);
        return copy_rows(state_.whole_gradient(number(), output), false, pass);
      case Work::product_again:
        return order_tokens(pass);
      case Work::weight_gradient:
        return value_gradient(scores, by_head, pass);
      case Work::input_gradient:
        state_.launch(op::batched_gemm(state_.gradient(number() - 1, scores), by_head,
                                       attention_->whole(Role::values, pass, false), false, true),
                      of_left_);
        return state_.begin_gradient(number() - 1);
      case Work::gradients_of_tokens:
        return put_gradients_of_tokens(Role::values, pass);
      default:
        return;
    }
  }

 private:
  Tensor by_head(const Pass& pass) const { return by_head_.view(0, attention_->matrix(Role::queries, pass).shape()); }
  // The same of the device's tokens.
  Tensor of_tokens(const Pass& pass) const {
    if (!of_tokens_) return by_head(pass);
    return of_tokens_.view(0, attention_->own(Role::queries, pass, false).shape());
  }
  void copy_rows(const Tensor& rows, bool to_rows, const Pass& pass) const {
    attention_->copy_heads(of_tokens(pass), rows, attention_->own_heads().count, to_rows, pass);
  }
  void value_gradient(const Tensor& scores, const Tensor& by_head, const Pass& pass) {
    const Tensor values = attention_->whole(Role::values, pass, true);
    const bool is_apart = has_parts();
    const Tensor gradients =
        is_apart ? state_.scratch(StageState::Use::keys, values.element_count()).view(0, values.shape()) : values;
    state_.launch(op::batched_gemm(gradients, scores, by_head, true, false), of_right_);
    if (is_apart) attention_->order_devices(Role::values, gradients, pass);
  }

  Kept output_;
  Tensor by_head_;      // of one pass
  Tensor of_tokens_{};  // likewise, where heads are exchanged
};

}  // namespace

std::unique_ptr<ComputedLayer> make_scores_layer(StageState& state, std::size_t layer,
                                                 std::shared_ptr<AttentionTensors> attention) {
  return std::make_unique<ScoresLayer>(state, layer, std::move(attention));
}

std::unique_ptr<ComputedLayer> make_mixed_layer(StageState& state, std::size_t layer,
                                                std::shared_ptr<AttentionTensors> attention) {
  return std::make_unique<MixedLayer>(state, layer, std::move(attention));
}

}  // namespace tandem
