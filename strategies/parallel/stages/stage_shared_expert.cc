// Exchanges of tokens with experts beside which the layers of their shared expert are computed, as by Megatron-LM's
// --moe-shared-expert-overlap (megatron/core/transformer/moe/token_dispatcher.py and shared_experts.py): forward up to
// its activation while tokens go to the experts, the rest while they come back, and backward the other way round.
#include "strategies/parallel/stages/stage.h"
#include "strategies/parallel/stages/streams.h"

namespace tandem {
namespace {

struct LayersBeside {
  std::size_t first = 0, end = 0;
};

LayersBeside layers_beside(Exchange exchange, const SharedExpert& expert) {
  const bool is_before = exchange == Exchange::tokens_to_experts || exchange == Exchange::gradients_from_experts;
  return is_before ? LayersBeside{expert.first, expert.activated} : LayersBeside{expert.activated, expert.end};
}

}  // namespace

bool Stage::is_beside_exchange(std::size_t layer) const {
  const auto found = shared_experts_.find(layer);
  return found != shared_experts_.end() && found->second.has(layer);
}

// Returns whether the caller may issue other work beside the exchange.
bool Stage::exchange_with_experts(Exchange exchange, std::int64_t elements, std::size_t layer, Progress& progress) {
  if (elements == 0 || !shared_experts_.contains(layer)) return starts_exchange(exchange, elements, layer, progress);
  ++progress.exchanges_;
  if (exchange == Exchange::tokens_to_experts || exchange == Exchange::tokens_from_experts) {
    forward_beside_exchange(exchange, layer, progress.pass_, false);
  } else {
    backward_beside_exchange(exchange, layer, progress);
  }
  return false;
}

void Stage::exchange_again(Exchange exchange, std::int64_t elements, std::size_t layer, bool is_beside,
                           Progress& progress) {
  if (is_beside && elements > 0) return forward_beside_exchange(exchange, layer, progress.pass_, true);
  starts_exchange(exchange, elements, layer, progress);
  end_exchange(progress);
}

Event Stage::begin_exchange(Exchange exchange, std::size_t layer, const Pass& pass) const {
  Stream& stream = device_.stream(kExpertStream);
  stream.wait(compute().record());
  this->exchange(exchange, layer, pass, stream);
  return stream.record();
}

void Stage::forward_beside_exchange(Exchange exchange, std::size_t layer, const Pass& pass, bool is_again) const {
  const LayersBeside layers = layers_beside(exchange, shared_experts_.at(layer));
  const Event exchanged = begin_exchange(exchange, layer, pass);
  for (std::size_t i = layers.first; i < layers.end; ++i) {
    if (is_again) {
      parameters_->begin_layer(i, pass.kind);
    } else {
      begin_forward_of(i, pass);
    }
    layer_forward(i, pass);
  }
  compute().wait(exchanged);
}

// Buckets of gradients are summed in the order of the model, so that those of these layers wait for their turn.
void Stage::backward_beside_exchange(Exchange exchange, std::size_t layer, const Progress& progress) {
  const Pass pass = of_gradients(progress.pass_);
  const LayersBeside layers = layers_beside(exchange, shared_experts_.at(layer));
  const Event exchanged = begin_exchange(exchange, layer, pass);
  for (std::size_t i = layers.end; i-- > layers.first;) {
    Progress of_layer = progress;
    begin_backward_of(i, of_layer);
    gradients_of_layer(i, pass);
    add_gradients_of_layer(i, pass);
  }
  compute().wait(exchanged);
}

}  // namespace tandem
