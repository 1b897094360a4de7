// Attention over tokens that devices divide, where these do not gather all keys and values.
//
// Keys that go round: as Transformer Engine does it (transformer_engine/pytorch/attention/dot_product_attention/
// context_parallel.py, AttnFuncWithCPAndKVP2P). In each round a device works on one piece of the keys while the next
// one arrives. The backward pass begins with the piece that the forward pass used last and goes round the other way, so
// that the sums of a piece's gradients, which follow it, reach its owner in the last round. There keys and values are
// one message and attention is one kernel; here each of its two products has rounds of its own.
//
// Heads for tokens: as AttnFuncWithCPAndQKVOA2A there and DeepSpeed-Ulysses do it (arXiv:2309.14509).
#include "strategies/parallel/stages/stage.h"
#include "strategies/parallel/stages/streams.h"

namespace tandem {

bool Stage::has_own_attention(std::size_t layer, const Pass& pass) const {
  return exchanges(layer, pass).keys > 0 && options_.context_exchange != ContextExchange::all_gather;
}

void Stage::attention_of_heads(std::size_t layer, const Pass& pass) const {
  const LayerExchanges& exchanged = exchanges(layer, pass);
  if (exchanged.queries > 0) exchange(Exchange::queries_to_heads, layer, pass, compute());
  exchange(Exchange::keys_to_heads, layer, pass, compute());
  launch(Work::product, layer, pass);
  launch(Work::operations, layer, pass);
  if (exchanged.results == 0) return;
  exchange(Exchange::results_to_tokens, layer, pass, compute());
  launch(Work::results_of_tokens, layer, pass);
}

void Stage::gradients_of_heads(std::size_t layer, const Pass& pass) const {
  const LayerExchanges& exchanged = exchanges(layer, pass);
  if (exchanged.results > 0) exchange(Exchange::result_gradients_to_heads, layer, pass, compute());
  for (const Work work :
       {Work::operations_gradient, Work::product_again, Work::weight_gradient, Work::input_gradient}) {
    launch(work, layer, pass);
  }
  exchange(Exchange::key_gradients_to_tokens, layer, pass, compute());
  if (exchanged.queries > 0) exchange(Exchange::query_gradients_to_tokens, layer, pass, compute());
  launch(Work::gradients_of_tokens, layer, pass);
}

// Sends to the neighbour that is `step` places further and receives from the one on the other side, both after the work
// that the compute stream holds now. Returns when that has arrived.
Event Stage::pass_on(const Exchanged& tensors, int step) const {
  Communicator& communicator = member_.groups.context->communicator();
  const int rank = member_.groups.context->rank_of(device_), size = communicator.size();
  Stream &sends = device_.stream(kSendPieceStream), &receives = device_.stream(kContextStream);
  const Event before = compute().record();
  sends.wait(before);
  receives.wait(before);
  communicator.send(tensors.part, (rank + step + size) % size, sends);
  communicator.receive(tensors.whole, (rank - step + size) % size, receives);
  return receives.record();
}

void Stage::attention_in_rounds(std::size_t layer, const Pass& pass) const {
  const int rounds = options_.context;
  if (model_.has_values()) {
    gather_pieces(Exchange::keys, layer, pass);
    launch(Work::product, layer, pass);
    return launch(Work::operations, layer, pass);
  }
  for (int round = 0; round < rounds; ++round) {
    Event arrived;
    if (round + 1 < rounds) arrived = pass_on(computation_->operands(Exchange::piece, layer, pass), 1);
    launch(Work::product, layer, pass);
    if (round > 0) launch(Work::product_sum, layer, pass);
    compute().wait(arrived);
  }
  launch(Work::operations, layer, pass);
  compute().wait(device_.stream(kSendPieceStream).record());
}

void Stage::gradients_in_rounds(std::size_t layer, const Pass& pass) const {
  const int rounds = options_.context;
  if (model_.has_values()) {
    gather_pieces(Exchange::keys_again, layer, pass);
    for (const Work work : {Work::operations_gradient, Work::product_again, Work::weight_gradient}) {
      launch(work, layer, pass);
    }
    sum_pieces(layer, pass);
    return launch(Work::input_gradient, layer, pass);
  }
  for (int round = 0; round < rounds; ++round) {
    const bool is_first = round == 0, is_last = round + 1 == rounds;
    const Exchange exchange = is_first || is_last ? Exchange::piece : Exchange::piece_and_sums;
    const Event arrived = pass_on(computation_->operands(exchange, layer, pass), -1);
    if (is_first) launch(Work::operations_gradient, layer, pass);
    for (const Work work : {Work::product_again, Work::weight_gradient, Work::input_gradient}) {
      launch(work, layer, pass);
    }
    if (!is_first) launch(Work::input_gradient_sum, layer, pass);
    compute().wait(arrived);
    if (!is_first) launch(Work::weight_gradient_sum, layer, pass);
  }
  compute().wait(device_.stream(kSendPieceStream).record());
}

// With values, products wait for all pieces, each of which comes to its place among those of the whole sequence.
void Stage::gather_pieces(Exchange exchange, std::size_t layer, const Pass& pass) const {
  const auto [whole, part] = computation_->operands(exchange, layer, pass);
  const std::int64_t count = part.element_count();
  const int devices = options_.context, mine = member_.place.context;
  const auto piece = [&, all = whole](int owner) { return all.flat_slice((owner + devices) % devices * count, count); };
  compute().copy(piece(mine), part, Category::communication);
  for (int round = 0; round + 1 < devices; ++round) {
    compute().wait(pass_on({.whole = piece(mine - round - 1), .part = piece(mine - round)}, 1));
  }
  compute().wait(device_.stream(kSendPieceStream).record());
}

// Each piece of the gradients goes round to its owner, and every device adds its own.
void Stage::sum_pieces(std::size_t layer, const Pass& pass) const {
  const auto [whole, part] = computation_->operands(Exchange::key_gradients, layer, pass);
  const std::int64_t count = part.element_count();
  const int devices = options_.context, mine = member_.place.context;
  const auto piece = [&, all = whole](int owner) { return all.flat_slice((owner + devices) % devices * count, count); };
  for (int round = 0; round + 1 < devices; ++round) {
    const int next = mine + round + 2;
    compute().wait(pass_on({.whole = part, .part = piece(mine + round + 1)}, -1));
    Op sum = op::scale_add(piece(next), part, 1, 1);
    sum.name = "sum of a piece";
    compute().launch(std::move(sum));
  }
  compute().copy(part, piece(mine), Category::communication);
  compute().wait(device_.stream(kSendPieceStream).record());
}

}  // namespace tandem
