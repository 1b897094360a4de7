// The backward passes of a stage, and what sums and applies their gradients.
#include <algorithm>
#include <utility>

#include "strategies/parallel/stages/stage.h"
#include "strategies/parallel/stages/streams.h"

namespace tandem {

// The pass as gradients see it, which may be summed in every pass.
Pass Stage::of_gradients(const Pass& pass) const {
  Pass of_gradients = pass;
  if (parameters_->sums_every_pass()) of_gradients.is_first = of_gradients.is_last = true;
  return of_gradients;
}

// Devices that share two stages reduce their gradients after the passes, in one order, and so does a stage to whose
// gradients another one adds. Pieces are reduced in every pass; the passes of devices that share two stages are in one
// order, too.
bool Stage::reduces_in(const Pass& pass) const {
  const bool may_reduce = parameters_->sums_every_pass() || (options_.ways() == 1 && !lends_table_);
  return pass.is_last && pass.kind != PipelineAction::Pass::inputs && may_reduce;
}

bool Stage::backward(Progress& progress) {
  if (!std::exchange(progress.is_begun_, true)) begin_backward(progress.pass_);
  if (repeats(progress)) {
    for (auto some = repeated_layers_.rbegin(); some != repeated_layers_.rend(); ++some) {
      progress.layers_ = parts_.size() - some->end;
      device_.repeat(repeated_[{progress.pass_.kind, some->first}], [&] { backward_of_layers(progress, some->first); });
    }
  } else if (backward_of_layers(progress, 0)) {
    return true;
  }
  end_backward(of_gradients(progress.pass_));
  return false;
}

// Down to layer `first`. Returns whether there is more.
bool Stage::backward_of_layers(Progress& progress, std::size_t first) {
  const Pass pass = of_gradients(progress.pass_);
  for (; progress.layers_ < parts_.size() - first; ++progress.layers_, progress.exchanges_ = 0) {
    const std::size_t i = parts_.size() - progress.layers_ - 1;
    if (is_beside_exchange(i)) {
      reduce_gradients_of_layer(i, pass);
      continue;
    }
    const LayerExchanges& exchanged = exchanges(i, pass);
    if (progress.exchanges_ == 0) {
      if (offload_) offload_->before_backward(i, progress.pass_);
      begin_backward_of(i, progress);
      if (exchange_with_experts(Exchange::gradients_to_experts, exchanged.combined, i, progress)) return true;
    }
    if (progress.exchanges_ == 1) {
      if (exchanged.keys > 0) {
        gradients_of_attention(i, pass);
      } else {
        gradients_of_layer(i, pass);
      }
      if (exchange_with_experts(Exchange::gradients_from_experts, exchanged.dispatched, i, progress)) return true;
    }
    add_gradients_of_layer(i, pass);
    reduce_gradients_of_layer(i, pass);
  }
  return false;
}

void Stage::begin_backward(const Pass& pass) {
  if (pass.kind != PipelineAction::Pass::inputs) begin_gradients(pass);
  computation_->begin_backward(pass, receive_gradient(pass));
}

void Stage::begin_backward_of(std::size_t layer, Progress& progress) {
  compute_again_before(layer, progress);
  parameters_->begin_layer(layer, progress.pass_.kind);
}

void Stage::begin_gradients(const Pass& pass) {
  if (of_gradients(pass).is_first) parameters_->begin_backward(*computation_);
}

void Stage::add_gradients_of_layer(std::size_t layer, const Pass& pass) {
  const bool has_gradients = parts_[layer].parameters() > 0 && !is_deferred(layer, pass);
  if (!pass.is_first && has_gradients) launch(Work::accumulation, layer, pass);
  if (parameters_->sums_every_pass() && has_gradients) sum_gradients_of_rows(layer);
}

void Stage::reduce_gradients_of_layer(std::size_t layer, const Pass& pass) {
  if (!reduces_in(pass)) return;
  if (settings_.overlap || parameters_->sums_every_pass()) parameters_->reduce_from(layer);
}

void Stage::end_backward(const Pass& pass) {
  if (reduces_in(pass)) parameters_->reduce_from(0);
  send_gradient(pass);
  if (pass.kind != PipelineAction::Pass::inputs) release_input();
}

// After the part of the backward pass that leaves them.
void Stage::weights(const Progress& progress) {
  const Pass pass = of_gradients(progress.pass_);
  begin_gradients(pass);
  for (auto some = repeated_layers_.rbegin(); some != repeated_layers_.rend(); ++some) {
    const auto work = [&] { weights_of_layers(pass, some->first, some->end); };
    if (repeats(progress)) {
      device_.repeat(repeated_[{pass.kind, some->first}], work);
    } else {
      work();
    }
  }
  if (reduces_in(pass)) parameters_->reduce_from(0);
  release_input();
}

void Stage::weights_of_layers(const Pass& pass, std::size_t first, std::size_t end) {
  const bool sums_each = parameters_->sums_every_pass();
  for (std::size_t i = end; i-- > first;) {
    if (is_deferrable(i)) {
      parameters_->begin_layer(i, pass.kind);
      gradients_of_weights(i, pass);
      if (sums_each) sum_gradients_of_rows(i);
    }
    if (reduces_in(pass) && (sums_each || settings_.overlap)) parameters_->reduce_from(i);
  }
}

// Gradients of the operands of attention go further back, and wait for nothing.
bool Stage::is_deferrable(std::size_t layer) const {
  const Layer& part = parts_[layer];
  return part.parameters() > 0 && !(part.gemm && part.gemm->batched);
}

bool Stage::is_deferred(std::size_t layer, const Pass& pass) const {
  return pass.kind == PipelineAction::Pass::inputs && is_deferrable(layer);
}

void Stage::gradients_of_weights(std::size_t layer, const Pass& pass) const {
  if (exchanges(layer, pass).gathered_again > 0) exchange(Exchange::input_again, layer, pass, compute());
  launch(Work::weight_gradient, layer, pass);
  if (!pass.is_first) launch(Work::accumulation, layer, pass);
}

void Stage::compute_again_before(std::size_t layer, Progress& progress) {
  const std::vector<Again>& all = recomputation_->before(layer);
  const auto is_again = [&all](std::size_t one) {
    return std::ranges::any_of(all, [one](const Again& again) { return again.layer == one && again.with_product; });
  };
  const auto is_with_shared_expert = [&](std::size_t one) {
    const auto shared = shared_experts_.find(one);
    return shared != shared_experts_.end() && std::ranges::all_of(shared->second.beside_exchanges(), is_again);
  };
  for (const Again& again : all) {
    const bool is_beside = is_with_shared_expert(again.layer);
    if (is_beside && is_beside_exchange(again.layer)) continue;
    parameters_->begin_layer(again.layer, progress.pass_.kind);
    if (!again.with_product) {
      launch(Work::operations, again.layer, progress.pass_);
      continue;
    }
    const LayerExchanges& exchanged = exchanges(again.layer, progress.pass_);
    exchange_again(Exchange::tokens_to_experts, exchanged.dispatched, again.layer, is_beside, progress);
    layer_forward(again.layer, progress.pass_);
    exchange_again(Exchange::tokens_from_experts, exchanged.combined, again.layer, is_beside, progress);
  }
  progress.exchanges_ = 0;
}

// With sequence parallelism, what follows a sum has been done to the device's rows, so that the gradients of all rows
// are gathered after it.
void Stage::gradients_of_layer(std::size_t layer, const Pass& pass) const {
  const LayerExchanges& exchanged = exchanges(layer, pass);
  const bool is_on_rows = exchanged.gathered_gradient > 0;
  if (is_on_rows) {
    launch(Work::operations_gradient, layer, pass);
    exchange_beside_products(Exchange::output_gradient, layer, pass);
  }
  const bool is_deferred = this->is_deferred(layer, pass);
  const bool has_exchanges = exchanged.summed_gradient > 0 || exchanged.gathered_again > 0;
  if (has_exchanges && settings_.overlap_tensor && !is_deferred) return gradients_beside_exchanges(layer, pass);
  if (exchanged.gathered_again > 0 && !is_deferred) exchange(Exchange::input_again, layer, pass, compute());
  if (!is_on_rows) launch(Work::operations_gradient, layer, pass);
  launch(Work::product_again, layer, pass);
  if (!is_deferred) launch(Work::weight_gradient, layer, pass);
  if (exchanged.with_input_gradient) launch(Work::input_gradient, layer, pass);
  wait_for_exchanges();
  if (exchanged.summed_gradient > 0) exchange(Exchange::input_gradient, layer, pass, compute());
}

// The input is gathered while its gradient is computed. That gradient is then summed, on a stream of its own, while the
// gradient of the weights is computed.
void Stage::gradients_beside_exchanges(std::size_t layer, const Pass& pass) const {
  const LayerExchanges& exchanged = exchanges(layer, pass);
  Stream& stream = device_.stream(kTensorStream);
  Event gathered;
  if (exchanged.gathered_again > 0) {
    stream.wait(compute().record());
    exchange(Exchange::input_again, layer, pass, stream);
    gathered = stream.record();
  }
  if (exchanged.gathered_gradient == 0) launch(Work::operations_gradient, layer, pass);
  launch(Work::product_again, layer, pass);
  if (exchanged.with_input_gradient) launch(Work::input_gradient, layer, pass);
  stream.wait(compute().record());
  if (exchanged.summed_gradient > 0) exchange(Exchange::input_gradient, layer, pass, stream);
  if (exchanged.gathered_again > 0) compute().wait(gathered);
  launch(Work::weight_gradient, layer, pass);
  compute().wait(stream.record());
}

// The right operands (keys or values) are passed around once more, and their gradients go back to the devices that own
// them.
void Stage::gradients_of_attention(std::size_t layer, const Pass& pass) const {
  if (has_own_attention(layer, pass)) {
    return options_.context_exchange == ContextExchange::ring ? gradients_in_rounds(layer, pass)
                                                              : gradients_of_heads(layer, pass);
  }
  Stream& stream = device_.stream(kContextStream);
  stream.wait(compute().record());
  exchange(Exchange::keys_again, layer, pass, stream);
  if (model_.has_values()) compute().wait(stream.record());
  launch(Work::operations_gradient, layer, pass);
  launch(Work::product_again, layer, pass);
  launch(Work::weight_gradient, layer, pass);
  stream.wait(compute().record());
  exchange(Exchange::key_gradients, layer, pass, stream);
  launch(Work::input_gradient, layer, pass);
  compute().wait(stream.record());
}

// Sums, where that is done after the passes, and the gradients of the word embeddings, of which the first and the last
// stage have a copy each.
void Stage::reduce() {
  if (options_.ways() > 1 || lends_table_) parameters_->reduce_from(0);
  if (shared_ == 0 || !(is_first() || is_last())) return;
  Stream& stream = device_.stream(kCommunicationStream);
  stream.wait(compute().record());
  ends_->all_reduce(parameters_->gradients(is_last() ? 0 : parameters_->first_of(0), shared_), stream);
  compute().wait(stream.record());
}

// Sums the gradients of norms and biases, which have seen only the device's rows.
void Stage::reduce_gradients_of_rows(const RowSums& sums, GroupCollectives* group) {
  if (sums.count == 0) return;
  parameters_->wait_until_reduced();
  if (!model_.has_values()) return group->all_reduce(parameters_->gradients(0, sums.count), compute());
  std::vector<Tensor> gradients, packed;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (own_rows_[i] == 0 || &row_sums_of(i) != &sums) continue;
    const std::int64_t end = parameters_->first_of(i) + parts_[i].parameters();
    gradients.push_back(parameters_->gradients(end - own_rows_[i], own_rows_[i]));
    packed.push_back(sums.packed.flat_slice(first, own_rows_[i]));
    first += own_rows_[i];
  }
  compute().launch(op::copy_many(packed, gradients));
  group->all_reduce(sums.packed, compute());
  compute().launch(op::copy_many(gradients, packed));
}

// Does the same for one layer, before its bucket is summed.
void Stage::sum_gradients_of_rows(std::size_t layer) const {
  if (own_rows_[layer] == 0) return;
  const std::int64_t end = parameters_->first_of(layer) + parts_[layer].parameters();
  devices_that_divide(layer)->all_reduce(parameters_->gradients(end - own_rows_[layer], own_rows_[layer]), compute());
}

void Stage::update() {
  if (!parameters_->sums_every_pass()) {
    reduce_gradients_of_rows(row_sums_, member_.groups.tensor);
    reduce_gradients_of_rows(expert_row_sums_, member_.groups.expert_tensor);
  }
  parameters_->update(*computation_);
}

}  // namespace tandem
