#include "scenarios/workloads/layer_stage.h"

#include <algorithm>

#include "scenarios/parallel_settings.h"
#include "strategies/parallel/streams.h"

namespace tandem {
namespace {

using Part = LayerKernel::Part;

constexpr int kExchangesOfLoss = 3;  // maximum, sum of exponentials, the target's logit (Megatron-LM's cross entropy)

// Returns the elements of one device's part of the weights that a layer shares with an embedding; 0 if there is none.
std::int64_t shared_elements(const Model& model, int parts, int part) {
  std::int64_t embedded = 0;
  for (const Layer& layer : model.layers) {
    if (layer.embedding) embedded = std::max(embedded, layer_part(layer, parts, part).tensors.front());
    if (!layer.shared_weights) continue;
    const Layer mine = layer_part(layer, parts, part);
    const std::int64_t elements = mine.gemm->depth * mine.gemm->columns;
    if (elements <= embedded) return elements;
  }
  return 0;
}

bool any_part(Part /*part*/) {
  return true;
}
bool is_of_weights(Part part) {
  return part == Part::weight_gradient;
}
bool is_not_of_weights(Part part) {
  return part != Part::weight_gradient;
}
bool is_of_inputs(Part part) {
  return part == Part::input_gradient;
}
bool is_of_operations(Part part) {
  return part == Part::memory;
}
// Recomputed scores need the keys, too.
bool is_of_keys(Part part) {
  return part == Part::weight_gradient || part == Part::product;
}

}  // namespace

LayerStage::LayerStage(const MeshSeat& seat, const LayersSettings& settings, const ParallelOptions& options, int stage,
                       GroupCollectives* ends, int live)
    : device_(*seat.device),
      settings_(settings),
      options_(options),
      division_(layer_division(settings, options)),
      place_(seat.place),
      groups_(seat.groups),
      ends_(ends),
      exchange_(seat.groups, division_.divides_rows),
      stage_(stage),
      examples_(options.batch / options.data / options.micro_batches),
      storage_(settings.dtype == DType::tf32 ? DType::f32 : settings.dtype),
      parameter_type_(settings.parameter_dtype.value_or(storage_)) {
  const std::vector<std::size_t> first = first_layers_of_stages(settings.model, options.stages());
  const auto index = static_cast<std::size_t>(stage);
  shared_ = ends == nullptr ? 0 : shared_elements(settings.model, options.tensor, place_.tensor);
  tied_ = is_last() ? shared_ : 0;
  make_work(first[index], first[index + 1]);
  const auto element_bytes = static_cast<std::int64_t>(size_of(parameter_type_));
  parameters_.emplace(device_,
                      GradientBuckets(parts_, of_experts_, tied_, settings_.bucket_bytes, element_bytes, groups_),
                      StageParameters::Settings{.stored = parameter_type_,
                                                .used = storage_,
                                                .optimizer = settings_.optimizer,
                                                .divides_state = options.distributed_optimizer,
                                                .overlaps_gather = options.overlap_gather});
  const auto columns_before = [&](std::size_t layer) {
    if (layer == 0) return std::int64_t{0};
    const Layer tokens = layer_of_tokens(settings.model.layers[layer - 1], options.context);
    return tokens.output_elements() / (divides_rows() ? options.tensor : 1);
  };
  open_channels(channels_, seat, options, stage,
                {.rows = examples_,
                 .inputs = columns_before(first[index]),
                 .outputs = columns_before(first[index + 1]),
                 .live = live,
                 .dtype = storage_,
                 .whole_inputs = !divides_rows(),
                 .whole_outputs = !divides_rows()});
}

void LayerStage::make_work(std::size_t first, std::size_t end) {
  const std::vector<Layer>& all = settings_.model.layers;
  const LayerKernels kernels(settings_.stack, settings_.dtype, examples_, settings_.model.depends_on_stack());
  for (std::size_t i = first; i < end; ++i) {
    const Layer part = divided_layer(all[i], division_, place_.tensor);
    LayerWork work = layer_work(all, i, part, division_, kernels, examples_);
    exchanged_ = std::max(exchanged_, work.most_exchanged());
    const Layer whole = layer_of_tokens(all[i], options_.context);
    const bool has_own_rows = sums_output(part) || part.output_elements() < whole.output_elements();
    if (divides_rows() && has_own_rows) of_rows_ += parameters_of_rows(part);
    const auto block = block_ending_at(all, i);
    if (settings_.activation_checkpointing && block) work.recomputed_from = std::max(first, *block) - first;
    owned_ += part.parameters();
    parts_.push_back(part);
    work_.push_back(std::move(work));
    of_experts_.push_back(options_.expert > 1 && has_experts(all[i]));
  }
}

void LayerStage::use(const StageMemory& memory) {
  scratch_ = memory.scratch;
  exchange_.use(memory.exchange);
}

std::int64_t LayerStage::loss_rows() const {
  std::int64_t most = 1;
  for (const LayerWork& work : work_) most = std::max(most, work.loss_rows);
  return most;
}

LayerOps LayerStage::ops(std::size_t index) const {
  return {compute(), parts_[index], examples_, settings_.dtype};
}

void LayerStage::forward(int micro_batch) {
  if (channels_.input) channels_.input->receive(examples_);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const bool uses_tied = tied_ > 0 && parts_[i].shared_weights;
    if (micro_batch == 0) parameters_->wait_for(uses_tied ? 0 : parameters_->first_of(i));
    layer_forward(i);
  }
  if (!channels_.output) return;
  channels_.output->next(examples_);
  channels_.output->send();
}

// The first kernel is the product or the lookup, whose results are summed before any other operation. Keys and values
// are passed around while products with those already present are computed.
void LayerStage::layer_forward(std::size_t index) const {
  const LayerWork& work = work_[index];
  exchange_.move_tokens(work.dispatched, compute());
  exchange_.gather(work.gathered_input, compute());
  if (work.keys > 0) {
    device_.stream(kContextStream).wait(compute().record());
    exchange_.gather_keys(work.keys, device_.stream(kContextStream));
  }
  for (const LayerKernel& kernel : work.forward) {
    ops(index).launch(kernel, scratch_);
    if (&kernel == &work.forward.front()) exchange_.sum(work.summed_output, compute());
  }
  if (work.keys > 0) compute().wait(device_.stream(kContextStream).record());
  for (int i = 0; i < kExchangesOfLoss; ++i) exchange_.sum_of_loss(work.loss_rows, compute());
  exchange_.move_tokens(work.combined, compute());
}

void LayerStage::backward(int micro_batch) {
  if (micro_batch == 0) parameters_->begin();
  if (channels_.gradient) channels_.gradient->receive(examples_);
  const bool is_complete = micro_batch + 1 == options_.micro_batches;
  for (std::size_t i = parts_.size(); i-- > 0;) {
    if (const auto& from = work_[i].recomputed_from) {
      for (std::size_t j = *from; j <= i; ++j) layer_forward(j);
    }
    layer_backward(i, micro_batch);
    if (is_complete && settings_.overlap) parameters_->reduce_from(i);
  }
  if (is_complete) parameters_->reduce_from(0);
  if (channels_.gradient) channels_.gradient->release();
  if (!channels_.input) return;
  channels_.input_gradient->next(examples_);
  channels_.input_gradient->send();
  channels_.input->release();
}

void LayerStage::layer_backward(std::size_t index, int micro_batch) {
  exchange_.move_tokens(work_[index].combined, compute());
  if (work_[index].keys > 0) {
    launch_gradients_of_attention(index);
  } else {
    launch_gradients(index);
  }
  exchange_.move_tokens(work_[index].dispatched, compute());
  // The gradients of later micro-batches are added to those of the first one.
  const std::int64_t count = parts_[index].parameters();
  if (micro_batch == 0 || count == 0) return;
  const Tensor mine = parameters_->gradients(parameters_->first_of(index), count);
  launch_memory(compute(), accumulation(count, parameter_type_), mine, mine);
}

// Launches the wanted kernels of a layer's backward pass.
void LayerStage::launch(std::size_t index, std::span<const LayerKernel> kernels,
                        bool (*is_wanted)(LayerKernel::Part)) const {
  const Layer& layer = parts_[index];
  const bool is_in_place = layer.has_weights() && parameter_type_ == storage_;
  const Tensor of_weights =
      is_in_place ? parameters_->gradients(parameters_->first_of(index), layer.parameters()) : Tensor();
  for (const LayerKernel& kernel : kernels) {
    if (is_wanted(kernel.part)) ops(index).launch(kernel, scratch_, of_weights);
  }
}

// With overlap_tensor, the input is gathered while its gradient is computed. That gradient is then summed, on a stream
// of its own, while the gradient of the weights is computed.
void LayerStage::launch_gradients(std::size_t index) const {
  const LayerWork& work = work_[index];
  const std::span<const LayerKernel> kernels = work.backward;
  launch(index, kernels.first(work.kernels_on_rows), any_part);
  exchange_.gather(work.gathered_gradient, compute());
  const std::span<const LayerKernel> others = kernels.subspan(work.kernels_on_rows);
  if ((work.summed_gradient == 0 && work.gathered_again == 0) || !settings_.overlap_tensor) {
    exchange_.gather(work.gathered_again, compute());
    launch(index, others, any_part);
    exchange_.sum(work.summed_gradient, compute());
    return;
  }
  Stream& stream = device_.stream(kTensorStream);
  Event gathered;
  if (work.gathered_again > 0) {
    stream.wait(compute().record());
    exchange_.gather(work.gathered_again, stream);
    gathered = stream.record();
  }
  launch(index, others, is_not_of_weights);
  stream.wait(compute().record());
  exchange_.sum(work.summed_gradient, stream);
  if (work.gathered_again > 0) compute().wait(gathered);
  launch(index, others, is_of_weights);
  compute().wait(stream.record());
}

// The right operands (keys or values) are passed around once more, and their gradients go back to the devices that own
// them.
void LayerStage::launch_gradients_of_attention(std::size_t index) const {
  const LayerWork& work = work_[index];
  Stream& stream = device_.stream(kContextStream);
  stream.wait(compute().record());
  exchange_.gather_keys(work.keys, stream);
  launch(index, work.backward, is_of_operations);
  launch(index, work.backward, is_of_keys);
  stream.wait(compute().record());
  exchange_.scatter_keys(work.keys, stream);
  launch(index, work.backward, is_of_inputs);
  compute().wait(stream.record());
}

// Sums the gradients of the word embeddings, of which the first and the last stage have a copy each.
void LayerStage::reduce_tied() {
  if (shared_ == 0 || !(is_first() || is_last())) return;
  Stream& stream = device_.stream(kCommunicationStream);
  stream.wait(compute().record());
  const std::int64_t first = is_last() ? 0 : parameters_->first_of(0) + parts_.front().parameters() - shared_;
  ends_->all_reduce(parameters_->gradients(first, shared_), stream);
  compute().wait(stream.record());
}

// Sums the gradients of norms and biases, which have seen only the device's rows.
void LayerStage::reduce_gradients_of_rows() {
  if (of_rows_ == 0) return;
  parameters_->wait_until_reduced();
  groups_.tensor->all_reduce(parameters_->gradients(0, of_rows_), compute());
}

void LayerStage::update() {
  reduce_gradients_of_rows();
  parameters_->update();
}

}  // namespace tandem
