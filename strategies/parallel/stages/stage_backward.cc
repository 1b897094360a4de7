// The backward passes of a stage, and what sums and applies their gradients.
#include "strategies/parallel/stages/stage.h"
#include "strategies/parallel/stages/streams.h"

namespace tandem {

void Stage::backward(int micro_batch) {
  const Pass pass = this->pass(micro_batch);
  const bool sums_each = parameters_->sums_every_pass();
  Pass of_gradients = pass;
  if (sums_each) of_gradients.is_first = of_gradients.is_last = true;
  if (of_gradients.is_first) parameters_->begin_backward(*computation_);
  computation_->begin_backward(pass, channels_.gradient ? channels_.gradient->receive(pass.examples) : Tensor());
  for (std::size_t i = parts_.size(); i-- > 0;) {
    compute_again_before(i, pass);
    parameters_->begin_layer(i, StageParameters::Way::backward);
    layer_backward(i, of_gradients);
    if (sums_each) sum_gradients_of_rows(i);
    if (of_gradients.is_last && !defers_weights_ && (sums_each || settings_.overlap)) parameters_->reduce_from(i);
  }
  if (of_gradients.is_last && !defers_weights_) parameters_->reduce_from(0);
  if (channels_.gradient) channels_.gradient->release();
  if (!channels_.input) return;
  channels_.input_gradient->wait_for_room();
  channels_.input_gradient->send(computation_->input_gradient(pass), pass.examples);
  if (!defers_weights_) channels_.input->release();
}

void Stage::weights(int micro_batch) {
  const Pass pass = this->pass(micro_batch);
  for (std::size_t i = parts_.size(); i-- > 0;) {
    if (is_deferred(i)) gradients_of_weights(i, pass);
    if (pass.is_last && settings_.overlap) parameters_->reduce_from(i);
  }
  if (pass.is_last) parameters_->reduce_from(0);
  if (channels_.input) channels_.input->release();
}

// Gradients of the operands of attention go further back, and wait for nothing.
bool Stage::is_deferred(std::size_t layer) const {
  const Layer& part = parts_[layer];
  return defers_weights_ && part.parameters() > 0 && !(part.gemm && part.gemm->batched);
}

void Stage::gradients_of_weights(std::size_t layer, const Pass& pass) const {
  if (exchanges(layer, pass).gathered_again > 0) exchange(Exchange::input_again, layer, pass, compute());
  launch(Work::weight_gradient, layer, pass);
  if (!pass.is_first) launch(Work::accumulation, layer, pass);
}

void Stage::compute_again_before(std::size_t layer, const Pass& pass) {
  for (const Again& again : recomputation_->before(layer)) {
    parameters_->begin_layer(again.layer, StageParameters::Way::backward);
    if (again.with_product) {
      layer_forward(again.layer, pass);
    } else {
      launch(Work::operations, again.layer, pass);
    }
  }
}

void Stage::layer_backward(std::size_t layer, const Pass& pass) const {
  const LayerExchanges& exchanged = exchanges(layer, pass);
  if (exchanged.combined > 0) exchange(Exchange::gradients_to_experts, layer, pass, compute());
  if (exchanged.keys > 0) {
    gradients_of_attention(layer, pass);
  } else {
    gradients_of_layer(layer, pass);
  }
  if (exchanged.dispatched > 0) exchange(Exchange::gradients_from_experts, layer, pass, compute());
  const bool has_gradients = parts_[layer].parameters() > 0 && !is_deferred(layer);
  if (!pass.is_first && has_gradients) launch(Work::accumulation, layer, pass);
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
  const bool is_deferred = this->is_deferred(layer);
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

// Sums the gradients of the word embeddings, of which the first and the last stage have a copy each.
void Stage::reduce_tied() {
  if (shared_ == 0 || !(is_first() || is_last())) return;
  Stream& stream = device_.stream(kCommunicationStream);
  stream.wait(compute().record());
  ends_->all_reduce(parameters_->gradients(is_last() ? 0 : parameters_->first_of(0), shared_), stream);
  compute().wait(stream.record());
}

// Sums the gradients of norms and biases, which have seen only the device's rows.
void Stage::reduce_gradients_of_rows() {
  if (of_rows_ == 0) return;
  parameters_->wait_until_reduced();
  if (!model_.has_values()) return member_.groups.tensor->all_reduce(parameters_->gradients(0, of_rows_), compute());
  std::vector<Tensor> gradients, packed;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (own_rows_[i] == 0) continue;
    const std::int64_t end = parameters_->first_of(i) + parts_[i].parameters();
    gradients.push_back(parameters_->gradients(end - own_rows_[i], own_rows_[i]));
    packed.push_back(row_sums_.flat_slice(first, own_rows_[i]));
    first += own_rows_[i];
  }
  compute().launch(op::copy_many(packed, gradients));
  member_.groups.tensor->all_reduce(row_sums_, compute());
  compute().launch(op::copy_many(gradients, packed));
}

// Does the same for one layer, before its bucket is summed.
void Stage::sum_gradients_of_rows(std::size_t layer) const {
  if (own_rows_[layer] == 0) return;
  const std::int64_t end = parameters_->first_of(layer) + parts_[layer].parameters();
  member_.groups.tensor->all_reduce(parameters_->gradients(end - own_rows_[layer], own_rows_[layer]), compute());
}

void Stage::update() {
  if (!parameters_->sums_every_pass()) reduce_gradients_of_rows();
  parameters_->update(*computation_);
}

}  // namespace tandem
