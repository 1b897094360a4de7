// The layers of a mixture of experts: rows are sent to experts, go through their dense layers, and are combined.
#include <optional>

#include "engine/layer_ops.h"
#include "scenarios/workloads/computed/experts.h"
#include "scenarios/workloads/computed/operations.h"
#include "scenarios/workloads/computed/quantised_operands.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// What all of these layers have in common.
class ExpertLayer : public ComputedLayer {
 public:
  ExpertLayer(StageState& state, std::size_t layer, std::shared_ptr<ExpertTensors> experts)
      : state_(state),
        index_(layer),
        experts_(std::move(experts)),
        forward_(state.whole(layer).name),
        of_weights_(state.whole(layer).name + " weight gradient"),
        of_input_(state.whole(layer).name + " input gradient") {}

  Exchanged operands(Exchange /*exchange*/, const Pass& /*pass*/) override {
    TANDEM_UNREACHABLE("an exchange of rows outside the layers of experts");
  }

 protected:
  const LayerFlow& flow() const { return state_.flow(index_); }
  int number_of(std::size_t layer) const { return static_cast<int>(state_.part().first + layer); }

  StageState& state_;
  std::size_t index_;
  std::shared_ptr<ExpertTensors> experts_;
  Name forward_, of_weights_, of_input_;
};

class DispatchLayer final : public ExpertLayer {
 public:
  using ExpertLayer::ExpertLayer;

  void launch(Work work, const Pass& pass, const LayerTensors& /*tensors*/) override {
    if (work == Work::product) return send(pass);
    if (work == Work::input_gradient) return add_gradient(pass);
  }

 private:
  void send(const Pass& pass) {
    const Tensor weights = experts_->weights.at(pass);
    state_.launch(op::largest_of_rows(weights, state_.output(flow().router, pass), state_.layer(index_).routing->used),
                  forward_);
    state_.launch(op::dispatch_rows(experts_->tokens.home(pass), state_.output(flow().input, pass), weights, false),
                  forward_);
  }
  void add_gradient(const Pass& pass) {
    const Tensor to = state_.gradient(flow().input, state_.output(flow().input, pass));
    const Tensor of_rows = experts_->of_tokens.home(pass), weights = experts_->weights.at(pass);
    if (state_.is_begun(flow().input)) {
      const Tensor sum = state_.scratch(StageState::Use::other, to.element_count()).view(0, to.shape());
      state_.launch(op::combine_rows(sum, of_rows, weights, false), of_input_);
      state_.launch(op::scale_add(to, sum, 1, 1), "accumulate");
    } else {
      state_.launch(op::combine_rows(to, of_rows, weights, false), of_input_);
    }
    state_.begin_gradient(flow().input);
  }
};

// A dense layer that each expert has with weights of its own.
class DenseExpertsLayer final : public ExpertLayer {
 public:
  DenseExpertsLayer(StageState& state, std::size_t layer, std::shared_ptr<ExpertTensors> experts)
      : ExpertLayer(state, layer, std::move(experts)),
        gemm_(*state.layer(layer).gemm),
        quantised_(state, layer),
        of_operations_(state.part()) {
    if (is_last()) return;
    const Layer::Routing& routing = *state.layer(experts_->dispatch).routing;
    const std::int64_t parts = gathering_devices(state, experts_->dispatch);
    operations_.emplace(state, layer,
                        OutputPart{.rows = state.whole(layer).gemm->experts * routing.rows * parts,
                                   .columns = gemm_.columns,
                                   .all_columns = gemm_.columns});
  }

  void launch(Work work, const Pass& pass, const LayerTensors& tensors) override {
    switch (work) {
      case Work::product:
        if (is_first()) experts_->tokens.order_by_expert(pass);
        multiply(pass, tensors);
        if (is_last()) experts_->made.order_by_device(pass);
        return;
      case Work::operations:
        if (operations_) operations_->forward(pass, tensors);
        return;
      case Work::operations_gradient:
        if (operations_) of_operations_.set(pass, operations_->backward(pass, tensors));
        return;
      case Work::product_again:  // once all rows of the gradient have arrived
        if (is_last()) experts_->of_made.order_by_expert(pass);
        return;
      case Work::weight_gradient:
        if (is_first_backward()) experts_->tokens.order_by_expert(pass);
        return weight_gradient(pass, tensors);
      case Work::input_gradient:
        return input_gradient(pass, tensors);
      default:
        return;
    }
  }

  Exchanged operands(Exchange exchange, const Pass& pass) override {
    switch (exchange) {
      case Exchange::tokens_to_experts:
        return experts_->tokens.to_experts(pass);
      case Exchange::input:
      case Exchange::input_again:
        return experts_->tokens.of_rows(pass);
      case Exchange::output:
        return experts_->made.of_rows(pass);
      case Exchange::tokens_from_experts:
        return experts_->made.from_experts(pass);
      case Exchange::gradients_to_experts:
        return experts_->of_made.to_experts(pass);
      case Exchange::output_gradient:
        return experts_->of_made.of_rows(pass);
      case Exchange::input_gradient:
        return experts_->of_tokens.of_rows(pass);
      case Exchange::gradients_from_experts:
        return experts_->of_tokens.from_experts(pass);
      default:
        TANDEM_UNREACHABLE("an exchange that experts lack");
    }
  }

 private:
  bool is_first() const { return index_ == experts_->dispatch + 1; }
  bool is_last() const { return index_ + 1 == experts_->combination; }
  bool reads_tokens() const { return flow().input == number_of(experts_->dispatch); }
  // Whether it is the first in the backward pass of those that read the rows.
  bool is_first_backward() const {
    return reads_tokens() && (is_last() || state_.flow(index_ + 1).input != flow().input);
  }
  // Views a matrix as one for each expert of the device.
  Tensor by_expert(const Tensor& matrix, std::int64_t columns) const {
    return matrix.view(0, {gemm_.experts, matrix.element_count() / gemm_.experts / columns, columns});
  }
  Tensor weights(const Tensor& flat) const { return flat.view(0, {gemm_.experts, gemm_.depth, gemm_.columns}); }
  Tensor input(const Pass& pass) const {
    if (reads_tokens()) return experts_->tokens.by_expert(pass);
    return by_expert(state_.output(flow().input, pass), gemm_.depth);
  }
  Tensor result(const Pass& pass) const {
    return is_last() ? experts_->made.by_expert(pass) : by_expert(operations_->product(pass), gemm_.columns);
  }
  Tensor of_result(const Pass& pass) const {
    return is_last() ? experts_->of_made.by_expert(pass) : by_expert(of_operations_.at(pass), gemm_.columns);
  }

  using Operand = QuantisedOperands::Operand;
  using Summed = QuantisedOperands::Summed;

  void multiply(const Pass& pass, const LayerTensors& tensors) {
    const Tensor left = quantised_.rounded(Operand::input, input(pass), Summed::columns);
    const Tensor right = quantised_.rounded(Operand::weights, weights(tensors.parameters), Summed::rows);
    state_.launch(op::batched_gemm(result(pass), left, right), forward_);
  }

  void weight_gradient(const Pass& pass, const LayerTensors& tensors) {
    const Tensor left = quantised_.rounded(Operand::input, input(pass), Summed::rows);
    const Tensor right = quantised_.rounded(Operand::gradient, of_result(pass), Summed::rows);
    state_.launch(op::batched_gemm(weights(tensors.gradients), left, right, true, false, 1, pass.is_first ? 0 : 1),
                  of_weights_);
  }

  // The layers that read the rows sent to experts add up their gradients.
  void input_gradient(const Pass& pass, const LayerTensors& tensors) {
    const bool is_begun = state_.is_begun(flow().input);
    const Tensor to = reads_tokens()
                          ? experts_->of_tokens.by_expert(pass)
                          : by_expert(state_.gradient(flow().input, state_.output(flow().input, pass)), gemm_.depth);
    const Tensor left = quantised_.rounded(Operand::gradient, of_result(pass), Summed::columns);
    const Tensor right = quantised_.rounded(Operand::weights, weights(tensors.parameters), Summed::columns);
    state_.launch(op::batched_gemm(to, left, right, false, true, 1, is_begun ? 1 : 0), of_input_);
    state_.begin_gradient(flow().input);
    if (is_first()) experts_->of_tokens.order_by_device(pass);
  }

  Layer::Gemm gemm_;  // the device's part
  QuantisedOperands quantised_;
  std::optional<Operations> operations_{};
  LeftGradient of_operations_;
};

OutputPart combined_part(const StageState& state, std::size_t layer) {
  const Layer::Routing& routing = *state.layer(layer).routing;
  return {.rows = routing.rows,
          .columns = routing.columns,
          .all_columns = routing.columns,
          .has_row_parts = state.part().division.divides_rows};
}

class CombinationLayer final : public ExpertLayer {
 public:
  CombinationLayer(StageState& state, std::size_t layer, std::shared_ptr<ExpertTensors> experts)
      : ExpertLayer(state, layer, std::move(experts)),
        operations_(state, layer, combined_part(state, layer)),
        of_operations_(state.part()) {}

  void launch(Work work, const Pass& pass, const LayerTensors& tensors) override {
    switch (work) {
      case Work::product:
        return state_.launch(
            op::combine_rows(operations_.product(pass), experts_->made.home(pass), experts_->weights.at(pass), true),
            forward_);
      case Work::operations:
        return operations_.forward(pass, tensors);
      case Work::operations_gradient:
        return send_gradients(pass, tensors);
      case Work::weight_gradient:
        return operations_.parameter_gradients(pass, tensors, of_operations_.at(pass));
      default:
        return;
    }
  }

 private:
  void send_gradients(const Pass& pass, const LayerTensors& tensors) {
    const Tensor gradient = operations_.backward(pass, tensors);
    of_operations_.set(pass, gradient);
    const Tensor weights = experts_->weights.at(pass);
    state_.launch(op::expert_weight_gradients(state_.gradient(flow().router, weights), experts_->made.home(pass),
                                              gradient, weights),
                  of_weights_);
    state_.begin_gradient(flow().router);
    state_.launch(op::dispatch_rows(experts_->of_made.home(pass), gradient, weights, true), of_input_);
  }

  Operations operations_;
  LeftGradient of_operations_;
};

}  // namespace

std::unique_ptr<ComputedLayer> make_expert_layer(StageState& state, std::size_t layer,
                                                 std::shared_ptr<ExpertTensors> experts) {
  switch (state.flow(layer).kind) {
    case LayerFlow::Kind::dispatch:
      return std::make_unique<DispatchLayer>(state, layer, std::move(experts));
    case LayerFlow::Kind::experts:
      return std::make_unique<DenseExpertsLayer>(state, layer, std::move(experts));
    case LayerFlow::Kind::combine:
      return std::make_unique<CombinationLayer>(state, layer, std::move(experts));
    default:
      TANDEM_UNREACHABLE("a layer outside a mixture of experts");
  }
}

}  // namespace tandem
