#include "scenarios/workloads/layer_stage.h"

#include <algorithm>

#include "scenarios/layer_division.h"
#include "strategies/parallel/streams.h"

namespace tandem {
namespace {

constexpr double kStageLearningRate = 1e-3;
constexpr int kExchangesOfLoss = 3;  // maximum, sum of exponentials, the target's logit (Megatron-LM's cross entropy)

// Whether the gradient of the layer's input is of use: nothing learns before the first layer with parameters.
bool has_parameters_before(const std::vector<Layer>& layers, std::size_t index) {
  return std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(index),
                     [](const Layer& layer) { return layer.parameters() > 0; });
}

// Elements of one device's part of the weights that a layer shares with an embedding; 0 if none does.
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

}  // namespace

LayerStage::LayerStage(const MeshSeat& seat, const LayersSettings& settings, const ParallelOptions& options, int stage,
                       GroupCollectives* ends, int live)
    : device_(*seat.device),
      settings_(settings),
      options_(options),
      place_(seat.place),
      groups_(seat.groups),
      ends_(ends),
      stage_(stage),
      examples_(options.batch / options.data / options.micro_batches),
      storage_(settings.dtype == DType::tf32 ? DType::f32 : settings.dtype),
      parameter_type_(settings.parameter_dtype.value_or(storage_)) {
  const std::vector<std::size_t> first = first_layers_of_stages(settings.model, options.stages());
  const auto index = static_cast<std::size_t>(stage);
  shared_ = ends == nullptr ? 0 : shared_elements(settings.model, options.tensor, place_.tensor);
  tied_ = is_last() ? shared_ : 0;
  make_work(first[index], first[index + 1]);
  allocate();
  divide_into_buckets();
  const auto columns_before = [&](std::size_t layer) {
    return layer == 0 ? 0 : settings.model.layers[layer - 1].output_elements();
  };
  open_channels(channels_, seat, options, stage,
                {.rows = examples_,
                 .inputs = columns_before(first[index]),
                 .outputs = columns_before(first[index + 1]),
                 .live = live,
                 .dtype = storage_});
}

void LayerStage::make_work(std::size_t first, std::size_t end) {
  const std::vector<Layer>& all = settings_.model.layers;
  const LayerKernels kernels(settings_.stack, settings_.dtype, examples_, settings_.model.depends_on_stack());
  const bool is_divided = options_.tensor > 1;
  for (std::size_t i = first; i < end; ++i) {
    const Layer part = layer_part(all[i], options_.tensor, place_.tensor);
    const bool with_input = has_parameters_before(all, i);
    Work work{.forward = kernels.forward(part), .backward = kernels.backward(part, with_input)};
    if (is_divided && sums_output(part)) work.summed_output = examples_ * part.output_elements();
    if (is_divided && with_input && sums_input_gradient(all, i)) {
      work.summed_gradient = examples_ * part.gemm->rows * part.gemm->depth;
    }
    if (is_divided && divides_loss(part)) work.loss_rows = examples_ * part.gemm->rows;
    const auto block = block_ending_at(all, i);
    if (settings_.activation_checkpointing && block) work.recomputed_from = std::max(first, *block) - first;
    owned_ += part.parameters();
    parts_.push_back(part);
    work_.push_back(std::move(work));
  }
}

void LayerStage::allocate() {
  const auto filled = [&] {
    Tensor tensor = device_.allocate(parameter_type_, {std::max<std::int64_t>(1, parameters())});
    compute().launch(op::fill(tensor, 0));
    return tensor;
  };
  parameters_ = filled();
  gradients_ = filled();
}

// From the last layer to the first, buckets of bucket_bytes or more.
void LayerStage::divide_into_buckets() {
  const auto element_bytes = static_cast<std::int64_t>(size_of(parameter_type_));
  Bucket bucket{.count = tied_};
  std::int64_t known = tied_;
  for (std::size_t i = parts_.size(); i-- > 0;) {
    work_[i].first_gradient = known;
    known += parts_[i].parameters();
    bucket.count = known - bucket.first;
    const bool is_full = bucket.count * element_bytes >= settings_.bucket_bytes;
    if (bucket.count == 0 || (!is_full && i > 0)) continue;
    buckets_.push_back(bucket);
    bucket = {.first = known};
  }
}

std::int64_t LayerStage::exchanged_elements() const {
  std::int64_t most = 1;
  for (const Work& work : work_) most = std::max({most, work.summed_output, work.summed_gradient});
  return most;
}

std::int64_t LayerStage::loss_rows() const {
  std::int64_t most = 1;
  for (const Work& work : work_) most = std::max(most, work.loss_rows);
  return most;
}

LayerOps LayerStage::ops(std::size_t index) const {
  return {compute(), parts_[index], examples_, settings_.dtype};
}

void LayerStage::sum(std::int64_t elements, Stream& stream) const {
  if (elements > 0) groups_.tensor->all_reduce(memory_.exchange.flat_slice(0, elements), stream);
}

void LayerStage::forward(int /*micro_batch*/) {
  if (channels_.input) channels_.input->receive(examples_);
  for (std::size_t i = 0; i < parts_.size(); ++i) layer_forward(i);
  if (!channels_.output) return;
  channels_.output->next(examples_);
  channels_.output->send();
}

// The first kernel is the product or the look-up, whose results are summed before anything else is done to them.
void LayerStage::layer_forward(std::size_t index) const {
  const Work& work = work_[index];
  for (const LayerKernel& kernel : work.forward) {
    ops(index).launch(kernel, memory_.scratch);
    if (&kernel == &work.forward.front()) sum(work.summed_output, compute());
  }
  for (int i = 0; work.loss_rows > 0 && i < kExchangesOfLoss; ++i) {
    groups_.tensor->all_reduce(memory_.row_sums.flat_slice(0, work.loss_rows), compute());
  }
}

void LayerStage::backward(int micro_batch) {
  if (micro_batch == 0) reduced_buckets_ = 0;
  if (channels_.gradient) channels_.gradient->receive(examples_);
  const bool is_complete = micro_batch + 1 == options_.micro_batches;
  for (std::size_t i = parts_.size(); i-- > 0;) {
    if (const auto& from = work_[i].recomputed_from) {
      for (std::size_t j = *from; j <= i; ++j) layer_forward(j);
    }
    layer_backward(i, micro_batch);
    if (is_complete && settings_.overlap) reduce_until(work_[i].first_gradient + parts_[i].parameters());
  }
  if (is_complete) reduce_until(parameters());
  if (channels_.gradient) channels_.gradient->release();
  if (!channels_.input) return;
  channels_.input_gradient->next(examples_);
  channels_.input_gradient->send();
  channels_.input->release();
}

void LayerStage::layer_backward(std::size_t index, int micro_batch) {
  launch_gradients(index);
  // The gradients of later micro-batches are added to those of the first one.
  const std::int64_t count = parts_[index].parameters();
  if (micro_batch == 0 || count == 0) return;
  const Tensor mine = gradients_.flat_slice(work_[index].first_gradient, count);
  launch_memory(compute(), accumulation(count, parameter_type_), mine, mine);
}

// With overlap_tensor the gradient of the input is summed on a stream of its own, while that of the weights is
// computed.
void LayerStage::launch_gradients(std::size_t index) const {
  const Work& work = work_[index];
  const Layer& layer = parts_[index];
  const bool is_in_place = layer.has_weights() && parameter_type_ == storage_;
  const Tensor of_weights = is_in_place ? gradients_.flat_slice(work.first_gradient, layer.parameters()) : Tensor();
  const auto launch = [&](auto is_wanted) {
    for (const LayerKernel& kernel : work.backward) {
      if (is_wanted(kernel.part)) ops(index).launch(kernel, memory_.scratch, of_weights);
    }
  };
  if (work.summed_gradient == 0 || !settings_.overlap_tensor) {
    launch([](LayerKernel::Part) { return true; });
    sum(work.summed_gradient, compute());
    return;
  }
  launch([](LayerKernel::Part part) { return part != LayerKernel::Part::weight_gradient; });
  Stream& stream = device_.stream(kTensorStream);
  stream.wait(compute().record());
  sum(work.summed_gradient, stream);
  launch([](LayerKernel::Part part) { return part == LayerKernel::Part::weight_gradient; });
  compute().wait(stream.record());
}

// Sums those gradients over the data-parallel devices whose buckets are complete when `known` of them are.
void LayerStage::reduce_until(std::int64_t known) {
  for (; reduced_buckets_ < buckets_.size(); ++reduced_buckets_) {
    Bucket& bucket = buckets_[reduced_buckets_];
    if (bucket.first + bucket.count > known) return;
    if (options_.data == 1) continue;
    Stream& stream = device_.stream(kCommunicationStream);
    stream.wait(compute().record());
    groups_.data->all_reduce(gradients_.flat_slice(bucket.first, bucket.count), stream);
    bucket.reduced = stream.record();
  }
}

// Sums the gradients of the word embeddings, of which the first and the last stage have a copy each.
void LayerStage::reduce_tied() {
  if (shared_ == 0 || !(is_first() || is_last())) return;
  Stream& stream = device_.stream(kCommunicationStream);
  stream.wait(compute().record());
  const std::int64_t first = is_last() ? 0 : parameters() - shared_;
  ends_->all_reduce(gradients_.flat_slice(first, shared_), stream);
  compute().wait(stream.record());
}

void LayerStage::update() {
  for (const Bucket& bucket : buckets_) {
    compute().wait(bucket.reduced);
    const Tensor gradients = gradients_.flat_slice(bucket.first, bucket.count);
    Op op = op::scale_add(parameters_.flat_slice(bucket.first, bucket.count), gradients, -kStageLearningRate, 1);
    op.name = "sgd";
    op.category = Category::update;
    compute().launch(std::move(op));
    launch_memory(compute(), optimizer_state(settings_.optimizer, bucket.count, storage_, parameter_type_), gradients,
                  gradients, Category::update);
  }
}

}  // namespace tandem
