#include "scenarios/workloads/scratch_stage.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "strategies/model/lora.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr double kRate = 1e-3;  // of learning, without meaning

// A GPU's units for products of matrices need operands that begin at multiples of 16 bytes, to which frameworks align
// the tensors of a buffer; here they follow each other without gaps. Tensors without data are aligned.
bool is_aligned_for(const Device& device, const Tensor& tensor) {
  constexpr std::uintptr_t kAlignment = 16;
  return device.id().type != DeviceType::gpu || reinterpret_cast<std::uintptr_t>(tensor.data()) % kAlignment == 0;
}

std::size_t index_of(Work work) {
  return static_cast<std::size_t>(work);
}

Work work_of(LayerKernel::Part part) {
  switch (part) {
    case LayerKernel::Part::product:
      return Work::product_again;
    case LayerKernel::Part::weight_gradient:
    case LayerKernel::Part::table_gradient:
      return Work::weight_gradient;
    case LayerKernel::Part::input_gradient:
      return Work::input_gradient;
    case LayerKernel::Part::memory:
      break;
  }
  return Work::operations_gradient;
}

bool ends_in_norm_or_activation(const Layer& layer) {
  if (layer.then.empty()) return false;
  const Pointwise last = layer.then.back();
  return last == Pointwise::rms_norm || last == Pointwise::layer_norm || has_activation(layer);
}

}  // namespace

ScratchStage::ScratchStage(const LayersSettings& settings, const StagePart& part, Device& device)
    : settings_(settings), part_(part), device_(device) {
  const LayerDivision& division = part.division;
  const bool has_rounds = division.context > 1 && division.context_exchange == ContextExchange::ring;
  for (std::size_t i = part.first; i < part.end; ++i) {
    layers_.push_back(divided_layer(settings.model.layers[i], division, part.tensor_part));
    if (!has_rounds || key_elements(layers_.back()) == 0) continue;
    rounds_.emplace(layers_.size() - 1, layer_of_piece(layers_.back(), division.context));
  }
  work_of(part.examples);
}

// Weights are quantised once in a step or, where they arrive anew, in each pass; frozen ones before the first step.
void ScratchStage::begin_step(const Batch& /*batch*/) {
  has_quantised_weights_.assign(layers_.size(), 0);
}

void ScratchStage::begin_forward(const Pass& /*pass*/, const Tensor& /*input*/) {
  if (part_.gathers_each_pass) has_quantised_weights_.assign(layers_.size(), 0);
}

const ScratchStage::PassWork& ScratchStage::work_of(std::int64_t examples) {
  const auto [entry, is_new] = work_.try_emplace(examples);
  PassWork& work = entry->second;
  if (!is_new) return work;
  const LayerKernels kernels(settings_.stack, settings_.dtype, examples, settings_.model.depends_on_stack());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    work.exchanges.push_back(
        layer_exchanges(settings_.model.layers, part_.first + i, layers_[i], part_.division, examples));
    work.kernels.push_back(kernels_of(i, kernels, work.exchanges.back()));
    if (rounds_.contains(i)) add_rounds(i, kernels, work.kernels.back());
    if (has_heads_exchanged(work.exchanges.back())) add_orders(i, kernels, work.exchanges.back(), work.kernels.back());
    add_host_time(i, work.kernels.back());
  }
  return work;
}

// The products of a block share its host time equally.
void ScratchStage::add_host_time(std::size_t layer, LayerKernelsByWork& kernels) const {
  const Layer& part = layers_[layer];
  if (settings_.stack.block_host_s <= 0 || !part.block || !part.gemm) return;
  const auto products =
      std::ranges::count_if(layers_, [&](const Layer& other) { return other.block == part.block && other.gemm; });
  const double of_pass_s = settings_.stack.block_host_s / 2 / static_cast<double>(products);
  const Work backward = kernels[index_of(Work::weight_gradient)].empty() ? Work::input_gradient : Work::weight_gradient;
  for (const Work work : {Work::product, backward}) {
    std::vector<LayerKernel>& some = kernels[index_of(work)];
    if (!some.empty()) some.front().issue_s += of_pass_s;
  }
}

// With sequence parallelism, what the first products of an adapter make is summed with the layer's own output, and each
// device does the rest for its rows of the sum.
int ScratchStage::row_parts_of_adapter(const Layer& part) const {
  return part_.division.divides_rows && sums_output(part) ? part_.division.parts_of(part) : 1;
}

// Adapters compute in the type of the activations. Where nothing learns up to a layer, it has no backward pass.
void ScratchStage::add_adapter(std::size_t layer, const LayerKernels& kernels, bool with_input_gradient,
                               LayerKernelsByWork& all) const {
  const Layer& part = layers_[layer];
  const auto add = [&all](Work work, std::vector<LayerKernel> more) {
    std::ranges::move(more, std::back_inserter(all[index_of(work)]));
  };
  const int row_parts = row_parts_of_adapter(part);
  add(Work::product, kernels.adapter_forward(part, row_parts));
  add(Work::weight_gradient, kernels.adapter_weights(part, row_parts, with_input_gradient));
  if (with_input_gradient) add(Work::input_gradient, kernels.adapter_input(part, row_parts));
  if (learns_until(settings_.model.layers, part_.first + layer)) return;
  for (const Work work : {Work::operations_gradient, Work::product_again, Work::weight_gradient, Work::input_gradient})
    all[index_of(work)].clear();
}

// The first kernel is the product or the lookup. With sequence parallelism, what follows a sum is done to the device's
// rows only. Attention whose keys go round has products of one round.
ScratchStage::LayerKernelsByWork ScratchStage::kernels_of(std::size_t layer, const LayerKernels& kernels,
                                                          const LayerExchanges& exchanges) const {
  const Layer& part = layers_[layer];
  LayerKernelsByWork all;
  const auto add_forward = [&all](const std::vector<LayerKernel>& more) {
    for (const LayerKernel& kernel : more) {
      const bool is_first = all[index_of(Work::product)].empty();
      all[index_of(is_first ? Work::product : Work::operations)].push_back(kernel);
    }
  };
  const auto add_backward = [&](const std::vector<LayerKernel>& more) {
    for (LayerKernel kernel : more) {
      if (kernel.part == LayerKernel::Part::weight_gradient) kernel.added = added_bytes(part);
      all[index_of(tandem::work_of(kernel.part))].push_back(kernel);
    }
  };
  const auto round = rounds_.find(layer);
  const bool has_rounds = round != rounds_.end(), is_on_rows = part_.division.divides_rows && sums_output(part);
  if (!is_on_rows && !has_rounds) {
    add_forward(kernels.forward(part));
    add_backward(kernels.backward(part, exchanges.with_input_gradient));
    quantise(layer, kernels, all);
    add_adapter(layer, kernels, exchanges.with_input_gradient, all);
    return all;
  }
  Layer product = has_rounds ? round->second : part;
  product.then.clear();
  const Layer operations = operations_on_rows(part, is_on_rows ? part_.division.parts_of(part) : 1);
  add_forward(kernels.forward(product));
  add_forward(kernels.forward(operations));
  add_backward(kernels.backward(operations, false));
  add_backward(kernels.backward(product, exchanges.with_input_gradient));
  quantise(layer, kernels, all);
  add_adapter(layer, kernels, exchanges.with_input_gradient, all);
  return all;
}

// Products read what kernels before them have quantised: the input, once for neighbours that read the same, and the
// gradient of the output; launch() adds the weights. Fused kernels of norms and activations write quantised results.
void ScratchStage::quantise(std::size_t layer, const LayerKernels& kernels, LayerKernelsByWork& all) const {
  const Layer& part = layers_[layer];
  if (settings_.quantised == Quantised::none || !part.can_be_quantised() || kernels.batch() == 0) return;
  const DType from = settings_.storage(), to = settings_.quantised_rate();
  for (std::vector<LayerKernel>& some : all) {
    for (LayerKernel& kernel : some) {
      auto* const product = std::get_if<ProductShape>(&kernel.shape);
      if (product == nullptr) continue;
      kernel.rate = to;
      product->scales_blocks = settings_.recipe == ScalingRecipe::blockwise;
    }
  }
  const Name name(part.name + " quantise");
  // Without gradients of weights, nothing reads a transposed copy.
  const int copies = part.is_frozen ? 1 : 2;
  const auto quantised = [&](std::int64_t elements) {
    LayerKernel kernel = quantisation(name, elements, from, to, settings_.recipe, copies);
    kernel.issue_s = kernels.issue_s();
    return kernel;
  };
  const Layer::Gemm& gemm = *part.gemm;
  const std::int64_t examples = kernels.batch();
  const bool is_fused = settings_.stack.fusion != Fusion::none;
  if (!shares_input(layers_, layer) && !(is_fused && layer > 0 && ends_in_norm_or_activation(layers_[layer - 1]))) {
    std::vector<LayerKernel>& product = all[index_of(Work::product)];
    product.insert(product.begin(), quantised(examples * gemm.rows * gemm.depth));
  }
  const bool next_shares = layer + 1 < layers_.size() && shares_input(layers_, layer + 1);
  if (is_fused && (has_activation(part) || (next_shares && has_activation(layers_[layer + 1])))) return;
  all[index_of(Work::operations_gradient)].push_back(quantised(examples * gemm.rows * gemm.columns));
}

bool ScratchStage::adds_in_products() const {
  return settings_.stack.accumulation == Accumulation::in_products;
}

// Gradients have the type of the parameters, a product's result that of the activations.
double ScratchStage::added_bytes(const Layer& layer) const {
  if (!adds_in_products() || layer.is_frozen) return 0;
  const auto added = static_cast<double>(2 * size_of(settings_.parameter_type()));
  return static_cast<double>(layer.weights()) * (added - static_cast<double>(size_of(settings_.storage())));
}

std::int64_t ScratchStage::exchanged_elements() const {
  std::int64_t most = 1;
  for (const LayerExchanges& exchanges : work_.at(part_.examples).exchanges) most = std::max(most, exchanges.most());
  return most;
}

double ScratchStage::most_moved_bytes() const {
  double most = 0, elements = 0;
  for (const LayerKernelsByWork& kernels : work_.at(part_.examples).kernels) {
    for (const std::vector<LayerKernel>& some : kernels) {
      for (const LayerKernel& kernel : some) most = std::max(most, kernel.bytes);
    }
  }
  for (const Layer& layer : layers_) elements += static_cast<double>(layer.parameters());
  const auto parameters = static_cast<std::int64_t>(elements);
  return std::max(
      {most, optimizer_state(settings_, parameters).bytes, accumulation(parameters, settings_.parameter_type()).bytes});
}

std::int64_t ScratchStage::loss_rows() const {
  std::int64_t most = 1;
  for (const LayerExchanges& exchanges : work_.at(part_.examples).exchanges) most = std::max(most, exchanges.loss_rows);
  return most;
}

// Gradients of weights in another type are converted afterwards, and written over an operand here, as are those whose
// place does not suit the device. Gradients of later
// passes are added to those of the first one.
void ScratchStage::launch(Work work, std::size_t layer, const Pass& pass, const LayerTensors& tensors) {
  Stream& stream = device_.compute_stream();
  if (work == Work::loss_sums || work == Work::loss) return;
  const Layer& part = layers_[layer];
  if (work == Work::accumulation) {
    const std::int64_t added = adds_in_products() && !part.is_frozen ? part.weights() : 0;
    return launch_memory(stream, accumulation(part.parameters() - added, settings_.parameter_type()), tensors.gradients,
                         tensors.gradients);
  }
  const bool has_own_type = settings_.parameter_type() == settings_.storage();
  Scratch scratch = memory_->operands;
  const bool learns = part.has_weights() && !part.is_frozen;
  if (learns && tensors.parameters && is_aligned_for(device_, tensors.parameters)) scratch.right = tensors.parameters;
  Tensor of_weights = learns && has_own_type ? tensors.gradients : Tensor();
  if (of_weights && !is_aligned_for(device_, of_weights)) of_weights = memory_->operands.right;
  const bool is_quantised = settings_.quantised != Quantised::none && part.can_be_quantised() && !part.is_frozen;
  const bool needs_weights = work == Work::product && is_quantised && pass.examples > 0;
  if (needs_weights && std::exchange(has_quantised_weights_[layer], 1) == 0) {
    // Those that were gathered as bytes lack their transposed copy only.
    const Name name(part.name + (settings_.gathers_quantised ? " transpose weights" : " quantise weights"));
    launch_memory(stream,
                  settings_.gathers_quantised ? transposition(name, part.weights(), settings_.quantised_rate())
                                              : quantisation(name, part.weights(), settings_.storage(),
                                                             settings_.quantised_rate(), settings_.recipe),
                  scratch.result, scratch.left);
  }
  const auto round = rounds_.find(layer);
  const LayerOps ops(stream, round == rounds_.end() ? part : round->second, pass.examples, settings_.dtype);
  for (const LayerKernel& kernel : work_of(pass.examples).kernels[layer][index_of(work)]) {
    if (kernel.of == LayerKernel::Of::layer) {
      ops.launch(kernel, scratch, of_weights, !pass.is_first);
      continue;
    }
    const Layer adapter =
        kernel.of == LayerKernel::Of::down_adapter ? down_adapter(part) : up_adapter(part, row_parts_of_adapter(part));
    LayerOps(stream, adapter, pass.examples, settings_.dtype).launch(kernel, memory_->operands);
  }
}

Exchanged ScratchStage::rows_of(std::int64_t elements, int parts) const {
  return {.whole = memory_->whole.flat_slice(0, elements),
          .part = memory_->rows ? memory_->rows.flat_slice(0, elements / parts) : Tensor()};
}

// As many elements as have the bytes of the rows on their way.
Exchanged ScratchStage::rows_to_experts(std::int64_t elements) const {
  const ExpertSettings& experts = settings_.experts;
  if (!experts.dispatches_bytes) return rows_of(elements, 1);
  const auto element_bytes = static_cast<double>(size_of(settings_.storage()));
  const double share = dispatched_bytes(experts, element_bytes) / element_bytes;
  const std::int64_t parts = part_.division.expert;
  return rows_of(std::llround(static_cast<double>(elements / parts) * share) * parts, 1);
}

Exchanged ScratchStage::operands(Exchange exchange, std::size_t layer, const Pass& pass) {
  const LayerExchanges& exchanges = work_of(pass.examples).exchanges[layer];
  const int tensor = part_.division.parts_of(layers_[layer]), context = part_.division.context;
  switch (exchange) {
    case Exchange::input:
      return rows_of(exchanges.gathered_input, tensor);
    case Exchange::input_again:
      return rows_of(exchanges.gathered_again, tensor);
    case Exchange::output:
      return rows_of(exchanges.summed_output, tensor);
    case Exchange::output_gradient:
      return rows_of(exchanges.gathered_gradient, tensor);
    case Exchange::input_gradient:
      return rows_of(exchanges.summed_gradient, tensor);
    case Exchange::tokens_to_experts:
      return rows_to_experts(exchanges.dispatched);
    case Exchange::gradients_from_experts:
      return rows_of(exchanges.dispatched, 1);
    case Exchange::tokens_from_experts:
      return rows_of(exchanges.combined, 1);
    case Exchange::gradients_to_experts:
      return rows_to_experts(exchanges.combined);
    case Exchange::keys:
    case Exchange::keys_again:
    case Exchange::key_gradients:
      return rows_of(exchanges.keys, context);
    case Exchange::piece:
      return rows_of(exchanges.keys / context, 1);
    case Exchange::piece_and_sums:
      return rows_of(2 * (exchanges.keys / context), 1);
    case Exchange::queries_to_heads:
    case Exchange::query_gradients_to_tokens:
      return rows_of(exchanges.queries, 1);
    case Exchange::keys_to_heads:
    case Exchange::key_gradients_to_tokens:
      return rows_of(exchanges.keys, 1);
    case Exchange::results_to_tokens:
    case Exchange::result_gradients_to_heads:
      return rows_of(exchanges.results, 1);
    case Exchange::loss_maxima:
    case Exchange::loss_sums:
    case Exchange::loss_targets:
      return {.whole = memory_->row_sums.flat_slice(0, exchanges.loss_rows)};
  }
  TANDEM_UNREACHABLE("an exchange");
}

void ScratchStage::update(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> /*moments*/,
                          std::int64_t /*step*/) {
  Op op = op::scale_add(parameters, gradients, -kRate, 1);
  op.name = "sgd";
  op.category = Category::update;
  parameters.device().compute_stream().launch(std::move(op));
}

void ScratchStage::finish_update(std::int64_t parameters, const Tensor& over) {
  const Tensor& to = over ? over : memory_->operands.result;
  const Tensor& from = over ? over : memory_->operands.left;
  launch_memory(to.device().compute_stream(), optimizer_state(settings_, parameters), to, from, Category::update);
}

void ScratchStage::accumulate(std::int64_t parameters, std::span<const Tensor> /*sums*/,
                              std::span<const Tensor> /*parts*/) {
  launch_memory(device_.compute_stream(), accumulation(parameters, settings_.parameter_type()),
                memory_->operands.result, memory_->operands.left);
}

}  // namespace tandem
