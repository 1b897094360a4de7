#include "strategies/parallel/layout/layer_division.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "strategies/model/lora.h"
#include "strategies/parallel/layout/nearest_sizes.h"
#include "strategies/parallel/layout/pipeline_schedule.h"
#include "strategies/parallel/layout/range.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using LayerSplit = Layer::Split;

// The first layer of each copy of a group, and the number of layers before and after the copies.
struct Blocks {
  std::vector<std::size_t> first{};
  std::size_t end = 0;  // of the last one
  int groups = 0;
};

Blocks blocks_of(const Model& model) {
  Blocks blocks;
  std::optional<Layer::Block> before;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const std::optional<Layer::Block>& block = model.layers[i].block;
    if (block && block != before) blocks.first.push_back(i);
    if (block && (!before || before->group != block->group)) ++blocks.groups;
    if (block) blocks.end = i + 1;
    before = block;
  }
  return blocks;
}

// Returns the parameters of a layer without its adapter.
std::vector<std::int64_t>& own_tensors(Layer& layer) {
  return layer.is_frozen ? layer.frozen : layer.tensors;
}

std::int64_t rows_of(const Layer& layer) {
  if (layer.routing) return layer.routing->rows;
  return layer.embedding ? layer.embedding->rows : layer.gemm ? layer.gemm->rows : 0;
}

std::optional<std::string> split_problem(const Layer& layer, int devices, bool unevenly) {
  const auto unless_divisible = [&](std::int64_t total, const char* what) -> std::optional<std::string> {
    if (unevenly ? total >= devices : total % devices == 0) return std::nullopt;
    const std::string problem = fmt::format("{} tensor-parallel devices do not divide the {} {} of layer '{}'", devices,
                                            total, what, layer.name);
    return unevenly ? problem : problem + "; " + nearest_divisors(total, devices);
  };
  switch (layer.divided_by()) {
    case LayerSplit::columns:
      return divides_loss(layer) ? std::nullopt : unless_divisible(layer.gemm->columns, "outputs");
    case LayerSplit::rows:
      return unless_divisible(layer.gemm->depth, "inputs");
    case LayerSplit::count:
      return unless_divisible(layer.gemm->count, "products (heads)");
    case LayerSplit::entries:
    case LayerSplit::none:
      return std::nullopt;
  }
  TANDEM_UNREACHABLE("a way to split a layer");
}

std::optional<std::string> stage_blocks_problem(const Model& model, const Blocks& blocks, int stages,
                                                const std::vector<int>& stage_blocks) {
  const auto all = static_cast<int>(blocks.first.size());
  if (static_cast<int>(stage_blocks.size()) != stages) {
    return fmt::format("stage_blocks has {} numbers, and there are {} stages (pipeline x virtual_stages)",
                       stage_blocks.size(), stages);
  }
  const int sum = std::accumulate(stage_blocks.begin(), stage_blocks.end(), 0);
  if (sum != all) {
    return fmt::format("stage_blocks has {} blocks in all, and model '{}' has {}", sum, model.name, all);
  }
  if (stages == 1) return std::nullopt;
  const auto is_empty = std::find(stage_blocks.begin() + 1, stage_blocks.end() - 1, 0);
  if (is_empty != stage_blocks.end() - 1) {
    return fmt::format("stage {} has no block; only the first and the last stage have other layers",
                       is_empty - stage_blocks.begin());
  }
  const bool begins_with_blocks = blocks.first.front() == 0, ends_with_blocks = blocks.end == model.layers.size();
  if ((stage_blocks.front() == 0 && begins_with_blocks) || (stage_blocks.back() == 0 && ends_with_blocks)) {
    return fmt::format("model '{}' has no layer for a stage without blocks", model.name);
  }
  return std::nullopt;
}

std::vector<std::size_t> stages_of_equal_cost(const Model& model, int stages) {
  std::vector<double> costs;
  for (const Layer& layer : model.layers) costs.push_back(static_cast<double>(layer.forward_macs()));
  const std::vector<int> first = divide_into_stages(costs, stages);
  return {first.begin(), first.end()};
}

// Returns over how many groups of joined devices those that divide experts are spread.
int groups_of_experts(const ParallelOptions& options) {
  if (options.joined == 0) return 1;
  const auto groups = [&](int ranks) { return (ranks + options.joined - 1) / options.joined; };
  const int places = options.expert * options.expert_parts() / options.tensor;
  const int of_replica = options.span_of_places(options.context);
  // Replicas with stages between them are in groups of their own, unless several of them are joined.
  const int apart = places > options.context ? places / options.context * groups(of_replica) : options.expert;
  return std::min({groups(options.span_of_experts()), apart, options.expert});
}

}  // namespace

std::optional<std::string> tensor_problem(const Model& model, int devices, int of_experts) {
  if (devices == 1) return std::nullopt;
  const auto is_split = [](const Layer& layer) { return layer.split != LayerSplit::none; };
  if (std::none_of(model.layers.begin(), model.layers.end(), is_split)) {
    return fmt::format("model '{}' does not say how its layers are split among tensor-parallel devices (`split`)",
                       model.name);
  }
  // Checks heads first, because all other divisions follow from them.
  for (const bool heads : {true, false}) {
    for (const Layer& layer : model.layers) {
      if ((layer.divided_by() == LayerSplit::count) != heads) continue;
      const int parts = of_experts > 0 && has_experts(layer) ? of_experts : devices;
      if (auto problem = split_problem(layer, parts, model.divides_unevenly)) return problem;
    }
  }
  return std::nullopt;
}

std::optional<std::string> stage_problem(const Model& model, int stages, const std::vector<int>& stage_blocks) {
  if (stages == 1 && stage_blocks.empty()) return std::nullopt;
  const Blocks blocks = blocks_of(model);
  if (blocks.groups == 0 && model.divides_unevenly && stage_blocks.empty()) {
    if (static_cast<std::size_t>(stages) <= model.layers.size()) return std::nullopt;
    return fmt::format("{} layers cannot form {} pipeline stages", model.layers.size(), stages);
  }
  if (blocks.groups != 1) {
    return fmt::format("pipeline stages consist of the copies of one group that repeats; model '{}' has {} such groups",
                       model.name, blocks.groups);
  }
  if (!stage_blocks.empty()) return stage_blocks_problem(model, blocks, stages, stage_blocks);
  const auto all = static_cast<int>(blocks.first.size());
  if (all % stages == 0) return std::nullopt;
  const std::string problem = fmt::format("{} stages do not divide the {} blocks '{}' of model '{}'", stages, all,
                                          model.layers[blocks.first.front()].block->group, model.name);
  if (stages > all) return problem;
  return fmt::format("{}: stage_blocks gives each stage a number of its own, such as [{}]", problem,
                     fmt::join(nearly_equal_blocks(all, stages), ", "));
}

std::optional<std::string> sequence_problem(const Model& model, int devices, int context) {
  for (const Layer& layer : model.layers) {
    const std::int64_t rows = rows_of(layer) / context;
    const bool has_divided_rows = sums_output(layer) || layer.divided_by() == LayerSplit::columns;
    if (!has_divided_rows || rows % devices == 0) continue;
    return fmt::format("{} tensor-parallel devices do not divide the {} rows of layer '{}'; {}", devices, rows,
                       layer.name, nearest_divisors(rows, devices));
  }
  return std::nullopt;
}

std::optional<std::string> context_problem(const Model& model, int devices) {
  if (devices == 1) return std::nullopt;
  bool has_attention = false;
  for (const Layer& layer : model.layers) {
    if (layer.convolution) return fmt::format("layer '{}' is a convolution, not of a sequence", layer.name);
    has_attention |= key_elements(layer) > 0;
    if (key_elements(layer) > 0 && rows_of(layer) % devices != 0) {
      return fmt::format("{} devices do not divide the {} rows of layer '{}'; {}", devices, rows_of(layer), layer.name,
                         nearest_divisors(rows_of(layer), devices));
    }
  }
  if (has_attention) return std::nullopt;
  return fmt::format("model '{}' has no attention, whose sequences are divided", model.name);
}

std::optional<std::string> expert_problem(const Model& model, int devices) {
  if (devices == 1) return std::nullopt;
  if (std::none_of(model.layers.begin(), model.layers.end(), has_experts)) {
    return fmt::format("model '{}' has no experts", model.name);
  }
  for (const Layer& layer : model.layers) {
    if (!has_experts(layer) || layer.gemm->experts % devices == 0) continue;
    return fmt::format("{} devices do not divide the {} experts of layer '{}'; {}", devices, layer.gemm->experts,
                       layer.name, nearest_divisors(layer.gemm->experts, devices));
  }
  return std::nullopt;
}

void keep_experts_whole(Model& model) {
  for (Layer& layer : model.layers) layer.is_whole |= has_experts(layer);
}

Layer layer_of_tokens(const Layer& layer, int parts) {
  Layer part = layer;
  const auto divide = [parts](std::int64_t& rows, std::int64_t& along) {
    if (rows % parts != 0) return;
    rows /= parts;
    along /= parts;
  };
  std::int64_t none = 0;
  if (part.gemm && !part.convolution) divide(part.gemm->rows, part.gemm->input_elements);
  if (part.routing) {
    divide(part.routing->rows, part.elementwise->elements);
  } else if (part.elementwise) {
    divide(part.elementwise->elements, none);
  }
  if (part.embedding) divide(part.embedding->rows, none);
  return part;
}

Layer layer_of_experts(const Layer& layer, const ExpertSettings& settings, int parts) {
  Layer part = layer;
  if (part.routing) {
    part.elementwise->forward_passes = passes_of(*part.routing, settings, parts);
    part.elementwise->backward_passes = part.elementwise->forward_passes;
  }
  if (!has_experts(layer)) return part;
  const double fullest = fullest_device(settings, layer.gemm->experts, parts);
  part.gemm->rows = std::llround(static_cast<double>(part.gemm->rows) * fullest);
  part.gemm->input_elements = part.gemm->rows * part.gemm->depth;
  part.gemm->experts /= parts;
  for (std::int64_t& tensor : own_tensors(part)) {
    if (tensor % layer.gemm->experts == 0) tensor /= parts;
  }
  return part;
}

LayerDivision layer_division(const TrainingSettings& settings, const ParallelOptions& options) {
  return {.context = options.context,
          .expert = options.expert,
          .tensor = options.tensor,
          .expert_tensor = options.expert_parts(),
          .context_exchange = options.context_exchange,
          .experts = settings.experts,
          .expert_groups = groups_of_experts(options),
          .divides_rows = settings.sequence_parallel && options.tensor > 1};
}

Layer divided_layer(const Layer& layer, const LayerDivision& division, int tensor_part) {
  const bool by_heads = division.context_exchange == ContextExchange::all_to_all && key_elements(layer) > 0;
  const int parts = division.parts_of(layer);
  const bool is_split = layer.divided_by() != LayerSplit::none;
  Layer of_tokens = by_heads ? layer_of_heads(layer, division.context) : layer_of_tokens(layer, division.context);
  if (division.divides_rows && is_of_experts(layer)) {  // a device sends its own rows, and gathers those of its parts
    of_tokens = layer_of_tokens(of_tokens, is_split ? division.tensor / parts : division.tensor);
  }
  const Layer part =
      layer_part(layer_of_experts(of_tokens, division.experts, division.expert), parts, tensor_part % parts);
  const bool is_on_rows = division.divides_rows && !is_split && !is_of_experts(layer);
  return is_on_rows ? rows_of_whole_layer(part, division.tensor) : part;
}

bool dispatches_tokens(const std::vector<Layer>& layers, std::size_t index) {
  return has_experts(layers[index]) && (index == 0 || !has_experts(layers[index - 1]));
}

bool combines_tokens(const std::vector<Layer>& layers, std::size_t index) {
  return has_experts(layers[index]) && (index + 1 == layers.size() || !has_experts(layers[index + 1]));
}

Layer layer_part(const Layer& layer, int parts, int part) {
  Layer result = layer;
  const auto of = [&](std::int64_t total) { return part_of(total, parts, part).count; };
  switch (layer.divided_by()) {
    case LayerSplit::columns:
      result.gemm->columns = of(layer.gemm->columns);
      for (std::int64_t& tensor : own_tensors(result)) {  // a norm of heads is whole on every device
        if (tensor % layer.gemm->columns == 0) tensor = tensor / layer.gemm->columns * result.gemm->columns;
      }
      break;
    case LayerSplit::rows:
      result.gemm->depth = of(layer.gemm->depth);
      result.gemm->input_elements = result.gemm->rows * result.gemm->depth;
      if (!layer.shared_weights)
        own_tensors(result).front() = result.gemm->experts * result.gemm->depth * result.gemm->columns;
      break;
    case LayerSplit::count:
      result.gemm->count = of(layer.gemm->count);
      break;
    case LayerSplit::entries:
      result.embedding->entries = of(layer.embedding->entries);
      own_tensors(result).front() = result.embedding->entries * result.embedding->columns;
      break;
    case LayerSplit::none:
      break;
  }
  if (result.adapter_rank > 0) result.tensors = adapter_tensors(result);
  return result;
}

bool divides_equally(const Layer& layer, int parts) {
  switch (layer.divided_by()) {
    case LayerSplit::columns:
      return layer.gemm->columns % parts == 0;
    case LayerSplit::rows:
      return layer.gemm->depth % parts == 0;
    case LayerSplit::count:
      return layer.gemm->count % parts == 0;
    case LayerSplit::entries:
      return layer.embedding->entries % parts == 0;
    case LayerSplit::none:
      return true;
  }
  TANDEM_UNREACHABLE("a way to split a layer");
}

bool sums_output(const Layer& layer) {
  return layer.divided_by() == LayerSplit::rows || layer.divided_by() == LayerSplit::entries;
}

bool sums_input_gradient(const std::vector<Layer>& layers, std::size_t index) {
  if (layers[index].divided_by() != LayerSplit::columns) return false;
  return index == 0 || layers[index - 1].divided_by() != LayerSplit::columns || divides_loss(layers[index - 1]);
}

bool is_last_by_columns(const std::vector<Layer>& layers, std::size_t index) {
  if (layers[index].divided_by() != LayerSplit::columns) return false;
  return index + 1 == layers.size() || layers[index + 1].divided_by() != LayerSplit::columns ||
         divides_loss(layers[index + 1]);
}

bool has_parts_between(const std::vector<Layer>& layers, std::size_t index) {
  if (index == 0 || index == layers.size()) return false;
  const Layer& before = layers[index - 1];
  return before.divided_by() == LayerSplit::count ||
         (before.divided_by() == LayerSplit::columns && !divides_loss(before));
}

Layer rows_of_whole_layer(const Layer& layer, int parts) {
  const bool is_attention = layer.gemm && layer.gemm->batched;
  return is_attention || layer.convolution ? layer : layer_of_tokens(layer, parts);
}

Layer operations_on_rows(const Layer& part, int parts) {
  Layer operations;
  operations.name = part.name;
  operations.then = part.then;
  operations.elementwise = Layer::Elementwise{.elements = part.output_elements() / parts};
  return operations;
}

std::int64_t parameters_of_rows(const Layer& part) {
  if (part.is_frozen) return 0;
  if (part.divided_by() == LayerSplit::none) return part.parameters();
  if (!sums_output(part)) return 0;
  const bool has_own_weights = !part.shared_weights && !part.tensors.empty();
  return part.parameters() - (has_own_weights ? part.tensors.front() : 0);
}

bool divides_loss(const Layer& layer) {
  return layer.divided_by() == LayerSplit::columns &&
         std::count(layer.then.begin(), layer.then.end(), Pointwise::cross_entropy) > 0;
}

std::vector<int> nearly_equal_blocks(int blocks, int stages) {
  std::vector<int> counts(static_cast<std::size_t>(stages), blocks / stages);
  const int more = blocks % stages;
  const int begin = (stages - more) / 2;
  for (int i = 0; i < more; ++i) ++counts[static_cast<std::size_t>(begin + i)];
  return counts;
}

std::vector<int> balanced_stages(const Model& model, int stages) {
  const Blocks blocks = blocks_of(model);
  const auto all = static_cast<int>(blocks.first.size());
  if (blocks.groups != 1 || stages > all || all % stages == 0) return {};
  return nearly_equal_blocks(all, stages);
}

std::vector<std::size_t> first_layers_of_stages(const Model& model, int stages, const std::vector<int>& stage_blocks) {
  TANDEM_CHECK(!stage_problem(model, stages, stage_blocks), "stages that the model's blocks do not divide into");
  if (stages > 1 && model.divides_unevenly && stage_blocks.empty()) return stages_of_equal_cost(model, stages);
  std::vector<std::size_t> first{0};
  const Blocks blocks = blocks_of(model);
  const auto all = static_cast<int>(blocks.first.size());
  int before = 0;
  for (int stage = 1; stage < stages; ++stage) {
    before += stage_blocks.empty() ? all / stages : stage_blocks[static_cast<std::size_t>(stage - 1)];
    first.push_back(before < all ? blocks.first[static_cast<std::size_t>(before)] : blocks.end);
  }
  first.push_back(model.layers.size());
  return first;
}

}  // namespace tandem
