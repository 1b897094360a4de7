#include "strategies/parallel/stages/stage.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "strategies/cross_device/host_values.h"
#include "strategies/model/lora.h"
#include "strategies/parallel/stages/sharded_stage_parameters.h"
#include "strategies/parallel/stages/streams.h"
#include "strategies/parallel/stages/whole_stage_parameters.h"

namespace tandem {
namespace {

// Returns the elements of one device's part of the weights that a layer shares with an embedding; 0 if there is none.
std::int64_t shared_elements(const Model& model, int parts, int part) {
  std::int64_t embedded = 0;
  for (const Layer& layer : model.layers) {
    if (layer.embedding && !layer.is_frozen)
      embedded = std::max(embedded, layer_part(layer, parts, part).tensors.front());
    if (!layer.shared_weights) continue;
    const Layer mine = layer_part(layer, parts, part);
    const std::int64_t elements = mine.gemm->depth * mine.gemm->columns;
    if (elements <= embedded) return elements;
  }
  return 0;
}

}  // namespace

Stage::Stage(const MeshMember& member, const TrainableModel& model, const ParallelOptions& options, Range layers,
             GroupCollectives* ends, std::span<const PipelineAction> actions, int chunk)
    : device_(*member.device),
      model_(model),
      settings_(model.settings()),
      options_(options),
      member_(member),
      division_(layer_division(settings_, options)),
      chunk_(chunk),
      stage_(options.stage_of(member.place.pipeline, chunk)),
      layers_(layers),
      ends_(ends),
      live_(live_micro_batches(actions, chunk)),
      owing_(owing_micro_batches(actions, chunk)),
      rows_(part_of(options.batch, options.data, member.place.data)) {
  shared_ = ends == nullptr ? 0 : shared_elements(model.model(), options.tensor, member.place.tensor);
  tied_ = is_last() ? shared_ : 0;
  const bool has_copy_engines =
      options.joined == 0 || options.joined % options.tensor == 0;  // nobody is beyond a network
  if (overlaps_products() && has_copy_engines && member.groups.tensor != nullptr)
    member.groups.tensor->communicator().set_gathers_by_copy_engines();
  if (overlaps_products() && has_copy_engines && member.groups.expert_tensor != nullptr)
    member.groups.expert_tensor->communicator().set_gathers_by_copy_engines();
  make_parts();
  for (RowSums* const sums : {&row_sums_, &expert_row_sums_}) {
    if (sums->count == 0 || !model.has_values()) continue;
    sums->packed = device_.allocate(settings_.parameter_type(), {sums->count});
  }
  for (int i = 0; i < options.micro_batches_of_chunk(); ++i) make_exchanges(pass(i).examples);
  const auto element_bytes = static_cast<std::int64_t>(size_of(settings_.parameter_type()));
  GradientBuckets buckets(parts_, of_experts_,
                          {.elements = is_first() || is_last() ? shared_ : 0, .is_copy = tied_ > 0}, member.groups,
                          {.bucket_bytes = settings_.bucket_bytes,
                           .element_bytes = element_bytes,
                           .is_divided = options.distributed_optimizer || options.shard_parameters,
                           .of_blocks = options.shard_parameters});
  const StageParameters::Types types{
      .stored = settings_.parameter_type(), .used = settings_.storage(), .gathers_bytes = settings_.gathers_quantised};
  if (options.shard_parameters) {
    parameters_ = std::make_unique<ShardedStageParameters>(
        device_, std::move(buckets), parts_,
        ShardedStageParameters::Settings{
            .types = types, .passes = options.micro_batches_of_chunk(), .table = shared_table()});
  } else {
    parameters_ = std::make_unique<WholeStageParameters>(
        device_, std::move(buckets),
        WholeStageParameters::Settings{
            .types = types, .divides_state = options.distributed_optimizer, .overlaps_gather = options.overlap_gather});
  }
  open_channels();
}

// Those that divide the layer's sides with this one.
GroupCollectives* Stage::devices_that_divide(std::size_t layer) const {
  return of_experts_[layer] ? member_.groups.expert_tensor : member_.groups.tensor;
}

Stage::RowSums& Stage::row_sums_of(std::size_t layer) {
  return of_experts_[layer] && division_.expert_tensor < division_.tensor ? expert_row_sums_ : row_sums_;
}

void Stage::make_parts() {
  for (std::int64_t i = layers_.first; i < layers_.first + layers_.count; ++i) {
    const Layer& layer = all_layers()[static_cast<std::size_t>(i)];
    const Layer part = divided_layer(layer, division_, member_.place.tensor);
    const Layer whole = layer_of_tokens(layer, options_.context);
    const bool has_own_rows = sums_output(part) || part.output_elements() < whole.output_elements();
    const bool is_of_experts = options_.has_groups_of_experts() && has_experts(layer);
    const bool has_parts = division_.parts_of(layer) > 1;  // else all that have it are in its group of gradients
    const bool sums_rows = division_.divides_rows && has_own_rows && has_parts;
    own_rows_.push_back(sums_rows ? parameters_of_rows(part) : 0);
    if (has_parts) own_rows_.back() += summed_adapter_parameters(part, division_.divides_rows);
    owned_ += part.parameters();
    parts_.push_back(part);
    of_experts_.push_back(is_of_experts);
    row_sums_of(parts_.size() - 1).count += own_rows_.back();
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const bool is_new = i == 0 || parts_[i].block != parts_[i - 1].block;
    if (is_new) repeated_layers_.push_back({.first = i, .end = i});
    ++repeated_layers_.back().end;
  }
  recomputation_.emplace(parts_, settings_.recomputed);
  if (!options_.overlap_shared_expert || model_.has_values()) return;
  for (const SharedExpert& one : shared_experts(parts_)) {
    for (std::size_t i = one.first; i < one.end; ++i) shared_experts_[i] = one;
    shared_experts_[one.first_of_experts] = shared_experts_[one.last_of_experts] = one;
  }
}

void Stage::make_exchanges(std::int64_t examples) {
  const auto [entry, is_new] = exchanges_.try_emplace(examples);
  if (!is_new) return;
  const auto first = static_cast<std::size_t>(layers_.first);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    entry->second.push_back(layer_exchanges(all_layers(), first + i, parts_[i], division_, examples));
  }
}

// Neighbouring stages exchange one row for each example, or the device's part of it.
void Stage::open_channels() {
  const auto columns_before = [this](std::int64_t layer) {
    if (layer == 0) return std::int64_t{0};
    const Layer& last = all_layers()[static_cast<std::size_t>(layer - 1)];
    const Layer part = has_parts_between(all_layers(), static_cast<std::size_t>(layer))
                           ? divided_layer(last, division_, member_.place.tensor)
                           : layer_of_tokens(last, options_.context);
    return part.output_elements() / (division_.divides_rows ? options_.tensor : 1);
  };
  const auto is_whole = [this](std::int64_t layer) {
    return !division_.divides_rows && !has_parts_between(all_layers(), static_cast<std::size_t>(layer));
  };
  const std::int64_t end = layers_.first + layers_.count;
  tandem::open_channels(channels_, member_, options_, chunk_,
                        {.rows = pass(0).examples,
                         .inputs = columns_before(layers_.first),
                         .outputs = columns_before(end),
                         .live = live_,
                         .dtype = settings_.storage(),
                         .whole_inputs = is_whole(layers_.first),
                         .whole_outputs = is_whole(end)});
}

StagePart Stage::part() const {
  const auto first = static_cast<std::size_t>(layers_.first);
  return {.first = first,
          .end = first + parts_.size(),
          .division = division_,
          .tensor_part = member_.place.tensor,
          .context_part = member_.place.context,
          .expert_part = options_.place_with_experts(member_.place.data * options_.context + member_.place.context,
                                                     member_.place.tensor) %
                         options_.expert,
          .examples = pass(0).examples,
          .passes = options_.micro_batches_of_chunk(),
          .live = live_,
          .owing = owing_,
          .gathers_each_pass = options_.shard_parameters,
          .has_cleared_table = lends_table_ || table_of_ != nullptr};
}

void Stage::use(std::unique_ptr<StageModel> computation, Device& host) {
  computation_ = std::move(computation);
  set_first_values(host);
  open_offload(host);
}

void Stage::open_offload(Device& host) {
  if (settings_.offload.optimizer > 0) parameters_->update_on(host, settings_.offload.optimizer);
  if (settings_.offload.blocks == 0) return;
  const std::vector<std::int64_t> kept =
      model_.kept_bytes(parts_, division_.divides_rows ? options_.tensor : 1,
                        division_.divides_rows ? division_.expert_tensor : 1, options_.key_parts());
  if (kept.empty()) return;
  offload_.emplace(device_, host, offload_segments(parts_, settings_.offload.blocks), kept, pass(0).examples, live_);
}

void Stage::set_first_values(Device& host) {
  const auto set = [&](std::int64_t first, std::size_t layer, std::int64_t count) {
    const auto values = model_.first_values(layer, part());
    if (!values || count == 0) return;
    const Tensor initial = host_tensor(host, settings_.parameter_type(), {count}, values);
    compute().wait(host.compute_stream().record());
    parameters_->set(first, initial);
  };
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    set(parameters_->first_of(i), static_cast<std::size_t>(layers_.first) + i, parts_[i].parameters());
  }
  const auto table = std::ranges::find_if(all_layers(), [](const Layer& layer) { return !!layer.embedding; });
  if (tied_ > 0) set(0, static_cast<std::size_t>(table - all_layers().begin()), tied_);
}

// Where micro-batches enter from two ends, those of the second stage follow those of the first one.
Pass Stage::pass(int micro_batch) const {
  const int passes = options_.micro_batches_of_chunk();
  const int index = (options_.ways() > 1 ? chunk_ * passes : 0) + micro_batch;
  const Range mine = part_of(rows_.count, options_.micro_batches, index);
  return {.index = index,
          .first = rows_.first + mine.first,
          .offset = mine.first,
          .examples = mine.count,
          .is_first = micro_batch == 0,
          .is_last = micro_batch + 1 == passes};
}

const LayerExchanges& Stage::exchanges(std::size_t layer, const Pass& pass) const {
  return exchanges_.at(pass.examples)[layer];
}

void Stage::launch(Work work, std::size_t layer, const Pass& pass) const {
  computation_->launch(work, layer, pass, tensors(layer, pass));
}

void Stage::exchange(Exchange exchange, std::size_t layer, const Pass& pass, Stream& stream) const {
  issue(exchange, member_.groups, devices_that_divide(layer), division_.divides_rows,
        computation_->operands(exchange, layer, pass), stream);
}

// Real values arrive before they are used, and leave after they were computed.
bool Stage::overlaps_products() const {
  return settings_.overlap_products && !model_.has_values();
}

// Parts of the operand are exchanged while the product works on others. wait_for_exchanges() comes after the product.
void Stage::exchange_beside_products(Exchange exchange, std::size_t layer, const Pass& pass) const {
  if (!overlaps_products()) return this->exchange(exchange, layer, pass, compute());
  Stream& stream = device_.stream(kTensorStream);
  stream.wait(compute().record());
  this->exchange(exchange, layer, pass, stream);
}

void Stage::wait_for_exchanges() const {
  if (overlaps_products()) compute().wait(device_.stream(kTensorStream).record());
}

Stage::Progress Stage::begin(const PipelineAction& action, bool in_parts) const {
  Progress progress;
  progress.pass_ = pass(action.micro_batch);
  progress.pass_.kind = action.pass;
  progress.in_parts_ = in_parts && !model_.has_values();
  return progress;
}

bool Stage::go_on(Progress& progress) {
  end_exchange(progress);
  switch (progress.pass_.kind) {
    case PipelineAction::Pass::forward:
      return forward(progress);
    case PipelineAction::Pass::backward:
    case PipelineAction::Pass::inputs:
      return backward(progress);
    case PipelineAction::Pass::weights:
      weights(progress);
      return false;
  }
  TANDEM_UNREACHABLE("a kind of passes");
}

// Starts an exchange with experts, and returns whether other work can be issued beside it.
bool Stage::starts_exchange(Exchange exchange, std::int64_t elements, std::size_t layer, Progress& progress) const {
  ++progress.exchanges_;
  if (elements == 0) return false;
  if (!progress.in_parts_) {
    this->exchange(exchange, layer, progress.pass_, compute());
    return false;
  }
  Stream& stream = device_.stream(kExpertStream);
  stream.wait(compute().record());
  this->exchange(exchange, layer, progress.pass_, stream);
  progress.exchanged_ = stream.record();
  return true;
}

void Stage::end_exchange(Progress& progress) const {
  if (progress.in_parts_) compute().wait(std::exchange(progress.exchanged_, Event()));
}

bool Stage::forward(Progress& progress) {
  const Pass& pass = progress.pass_;
  if (!std::exchange(progress.is_begun_, true)) {
    computation_->begin_forward(pass, receive_input(pass));
  }
  if (repeats(progress)) {
    for (const RepeatedLayers& some : repeated_layers_) {
      progress.layers_ = some.first;
      device_.repeat(repeated_[{pass.kind, some.first}], [&] { forward_of_layers(progress, some.end); });
    }
  } else if (forward_of_layers(progress, parts_.size())) {
    return true;
  }
  send_output(pass);
  return false;
}

// Up to layer `end`. Returns whether there is more.
bool Stage::forward_of_layers(Progress& progress, std::size_t end) {
  const Pass& pass = progress.pass_;
  for (std::size_t& i = progress.layers_; i < end; ++i, progress.exchanges_ = 0) {
    if (is_beside_exchange(i)) continue;
    const LayerExchanges& exchanged = exchanges(i, pass);
    if (progress.exchanges_ == 0) {
      begin_forward_of(i, pass);
      if (exchange_with_experts(Exchange::tokens_to_experts, exchanged.dispatched, i, progress)) return true;
    }
    if (progress.exchanges_ == 1) {
      layer_forward(i, pass);
      if (exchange_with_experts(Exchange::tokens_from_experts, exchanged.combined, i, progress)) return true;
    }
    if (offload_ && !progress.keeps_nothing_) offload_->after_forward(i, pass);
  }
  return false;
}

// Whether the work of the layers in this pass is that of others of its kind: it neither waits for parameters nor
// reduces gradients.
bool Stage::repeats(const Progress& progress) const {
  const Pass& pass = progress.pass_;
  const bool is_forward = pass.kind == PipelineAction::Pass::forward;
  const bool is_alike = !pass.is_first && (is_forward || !pass.is_last) && rows_.count % options_.micro_batches == 0;
  return is_alike && !progress.in_parts_ && !options_.shard_parameters && !offload_ && !model_.has_values();
}

// Parameters must be there before their first use.
void Stage::begin_forward_of(std::size_t layer, const Pass& pass) const {
  const bool uses_tied = tied_ > 0 && parts_[layer].shared_weights;
  const std::int64_t own = parts_[layer].parameters();
  if (pass.is_first && (own > 0 || !uses_tied)) parameters_->wait_for(parameters_->first_of(layer), own);
  if (pass.is_first && uses_tied) parameters_->wait_for(0, tied_);
  if (pass.is_first && table_of_ != nullptr && parts_[layer].shared_weights) wait_for_shared_table();
  parameters_->begin_layer(layer, StageParameters::Way::forward);
}

// All of a layer but its exchanges with experts. The results of the product or the lookup are summed before any other
// operation.
void Stage::layer_forward(std::size_t layer, const Pass& pass) const {
  if (has_own_attention(layer, pass)) {
    return options_.context_exchange == ContextExchange::ring ? attention_in_rounds(layer, pass)
                                                              : attention_of_heads(layer, pass);
  }
  const LayerExchanges& exchanged = exchanges(layer, pass);
  Stream& context = device_.stream(kContextStream);
  if (exchanged.gathered_input > 0) exchange_beside_products(Exchange::input, layer, pass);
  if (exchanged.keys > 0) {
    context.wait(compute().record());
    exchange(Exchange::keys, layer, pass, context);
    if (model_.has_values()) compute().wait(context.record());
  }
  if (exchanged.summed_output > 0 && overlaps_products()) exchange_beside_products(Exchange::output, layer, pass);
  launch(Work::product, layer, pass);
  if (exchanged.summed_output > 0 && !overlaps_products()) exchange(Exchange::output, layer, pass, compute());
  wait_for_exchanges();
  launch(Work::operations, layer, pass);
  if (exchanged.keys > 0) compute().wait(context.record());
  if (exchanged.loss_rows > 0) exchange_loss(layer, pass);
}

// As Megatron-LM's cross entropy of logits whose columns are divided.
void Stage::exchange_loss(std::size_t layer, const Pass& pass) const {
  exchange(Exchange::loss_maxima, layer, pass, compute());
  launch(Work::loss_sums, layer, pass);
  exchange(Exchange::loss_sums, layer, pass, compute());
  exchange(Exchange::loss_targets, layer, pass, compute());
  launch(Work::loss, layer, pass);
}

void Stage::copy_layer(std::size_t layer, const LinearTensors& whole, Worker& worker) const {
  const auto first = static_cast<std::size_t>(layers_.first);
  if (layer < first || layer >= first + parts_.size()) return;
  const Layer& all = all_layers()[layer];
  const Layer& mine = parts_[layer - first];
  const Tensor flat = tensors(layer - first).parameters;
  const LinearTensors part = linear_views(flat, {.inputs = mine.gemm->depth, .outputs = mine.gemm->columns});
  const bool by_rows = all.split == Layer::Split::rows;
  const std::int64_t begin =
      part_of(by_rows ? all.gemm->depth : all.gemm->columns, division_.tensor, member_.place.tensor).first;
  Stream& stream = worker.cpu().compute_stream();
  stream.launch(op::place_along(whole.weights, copied_to_host(worker, part.weights), by_rows ? 0 : 1, begin));
  stream.launch(op::place_along(whole.bias, copied_to_host(worker, part.bias), 0, by_rows ? 0 : begin));
}

}  // namespace tandem
