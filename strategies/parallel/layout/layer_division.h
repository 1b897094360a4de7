// Pure functions that divide a table of layers among tensor-parallel devices and pipeline stages, as Megatron-LM does
// (arXiv:1909.08053, arXiv:2104.04473). The layers of the model file say how each of them is split.
//
// With sequence parallelism (arXiv:2205.05198) the devices also divide the rows of what is between the split layers:
// the sums before it become reduce-scatters of rows, and what comes after it is gathered first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/model/model.h"
#include "strategies/model/training_settings.h"
#include "strategies/parallel/layout/parallel_options.h"

namespace tandem {

// Return why the model's layers cannot be divided among this number of devices or stages, for messages; nothing where
// they can.
// `of_experts`: those of the devices that divide each expert; 0: all.
std::optional<std::string> tensor_problem(const Model& model, int devices, int of_experts = 0);
std::optional<std::string> stage_problem(const Model& model, int stages, const std::vector<int>& stage_blocks = {});
// Does the same for the rows that sequence parallelism divides, in each of `context` parts of the sequences.
std::optional<std::string> sequence_problem(const Model& model, int devices, int context = 1);
// Do the same for the sequences of attention, and for experts.
std::optional<std::string> context_problem(const Model& model, int devices);
// Does the same for the heads that devices exchange for tokens, of those that each tensor-parallel device has.
std::optional<std::string> heads_problem(const Model& model, int devices, int tensor);
std::optional<std::string> expert_problem(const Model& model, int devices);

// Lets every tensor-parallel device have its experts as a whole, whatever the model file says
// (ParallelOptions::expert_tensor).
void keep_experts_whole(Model& model);

// Returns the part of a layer that device `part` of `parts` computes: a layer with the shapes and the parameters of
// that part. The numbers of rows of a table and of outputs of a loss may differ by one among the devices.
Layer layer_part(const Layer& layer, int parts, int part);
// Returns whether all of these devices compute equal parts.
bool divides_equally(const Layer& layer, int parts);

// Returns the part of a layer that works on 1/parts of the tokens of each sequence. Keys and values of attention are
// whole: the devices exchange them. Every device computes rows that do not divide, such as the one of a pooler.
Layer layer_of_tokens(const Layer& layer, int parts);
// Returns the part of a product of attention that has 1/parts of its heads, of all tokens
// (ContextExchange::all_to_all).
Layer layer_of_heads(const Layer& layer, int parts);
// Returns a product of attention as it works on one of `parts` equal pieces of its keys or values, on 1/parts of the
// pairs that a mask leaves: with two chunks of the sequence for each device, from its begin and its end, all pieces
// have equally many.
Layer layer_of_piece(const Layer& layer, int parts);
// Returns the part of a layer that has 1/parts of its experts, with the tokens that all devices send to these: the part
// of the device that gets the most.
Layer layer_of_experts(const Layer& layer, const ExpertSettings& settings, int parts);
// How a mesh divides a layer: its tokens, experts and sides, and with sequence parallelism the rows of whole layers.
struct LayerDivision {
  int context = 1, expert = 1, tensor = 1;
  int expert_tensor = 1;  // devices that divide each expert
  ContextExchange context_exchange = ContextExchange::all_gather;
  ExpertSettings experts{};
  int expert_groups = 1;      // of the devices that divide experts, with a network among the groups only
  bool divides_rows = false;  // sequence parallelism over the tensor-parallel devices

  // Returns how many neighbours along tensor divide a layer, or a part of it.
  int parts_of(const Layer& layer) const { return is_of_experts(layer) ? expert_tensor : tensor; }
};
LayerDivision layer_division(const TrainingSettings& settings, const ParallelOptions& options);
// Divides a layer in all these ways, for one of the tensor-parallel devices.
Layer divided_layer(const Layer& layer, const LayerDivision& division, int tensor_part);

// Returns how many elements of keys or values a product of attention reads for one example; 0 for other layers.
std::int64_t key_elements(const Layer& layer);
// The same of what devices pass on or exchange for heads: all tokens, also where a query sees a window of them.
std::int64_t passed_key_elements(const Layer& part, const LayerDivision& division);
// Return whether tokens go to the devices that have the experts before the layer, and whether they come back after it.
bool dispatches_tokens(const std::vector<Layer>& layers, std::size_t index);
bool combines_tokens(const std::vector<Layer>& layers, std::size_t index);

// Return whether a layer's output is a sum over the devices, and whether the gradient of its input is. Neighbours that
// are split by columns share an input, whose gradient only the first of them sums.
bool sums_output(const Layer& layer);
bool sums_input_gradient(const std::vector<Layer>& layers, std::size_t index);
// Returns whether the layer is the last of those neighbours. It goes backward first, and their input is gathered again
// for it.
bool is_last_by_columns(const std::vector<Layer>& layers, std::size_t index);
// Returns whether each device has the loss of its own part of the outputs only, so that the devices exchange maxima and
// sums of rows.
bool divides_loss(const Layer& layer);

// Returns whether each device has only its part of what is between a layer and the one before it.
bool has_parts_between(const std::vector<Layer>& layers, std::size_t index);

// Returns, for sequence parallelism, what one of `parts` devices computes of a layer that is not split. Every device
// computes rows that do not divide, such as the one of a pooler.
Layer rows_of_whole_layer(const Layer& layer, int parts);
// Returns, for sequence parallelism, the operations that follow a sum, as a layer of their own on the rows of one
// device.
Layer operations_on_rows(const Layer& part, int parts);
// Returns, for sequence parallelism, how many parameters of a device's part have gradients that each device knows for
// its own rows only.
std::int64_t parameters_of_rows(const Layer& part);

// Returns the first layer of each stage, followed by the number of layers. The stages have equal numbers of copies of
// the group that repeats, or those in `stage_blocks`; what precedes the group belongs to the first stage, and what
// follows it to the last one. Without `stage_blocks`, the stages of a model that divides unevenly cost about the same.
std::vector<std::size_t> first_layers_of_stages(const Model& model, int stages,
                                                const std::vector<int>& stage_blocks = {});

// Returns numbers of blocks that differ by at most one. Of the stages with fewer, the last one is the first to be
// chosen, then the first one: they have other layers as well, and the loss costs more than embeddings.
std::vector<int> nearly_equal_blocks(int blocks, int stages);

// Returns them for a model whose blocks do not divide among the stages; empty where they do, and where nothing helps.
std::vector<int> balanced_stages(const Model& model, int stages);

}  // namespace tandem
