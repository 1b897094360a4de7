#include "scenarios/workloads/computed/computed_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/workloads/computed/computed_stage.h"
#include "scenarios/workloads/computed/drawn_word.h"
#include "scenarios/workloads/computed/he_uniform.h"
#include "scenarios/workloads/computed/quantised_operands.h"
#include "strategies/parallel/layout/range.h"

namespace tandem {
namespace {

constexpr std::int64_t kBytes = 256;  // tokens
constexpr double kDeviation = 0.02;   // of first weights, as of GPT-2 (Radford and others, 2019)

// Returns the parameters that follow a layer's weights: the scales of norms are 1, all else is 0.
void add_operations(const Layer& part, std::int64_t first, std::vector<ValuesAt>& values) {
  const std::int64_t columns = output_columns(part);
  for (const Pointwise operation : part.then) {
    if (operation == Pointwise::bias) values.push_back({.first = first});
    if (is_row_norm(operation)) values.push_back({.first = first, .values = [](std::int64_t) { return 1.0; }});
    if (operation == Pointwise::layer_norm) values.push_back({.first = first + columns});
    first += columns * (operation == Pointwise::layer_norm                                 ? 2
                        : operation == Pointwise::bias || operation == Pointwise::rms_norm ? 1
                                                                                           : 0);
  }
}

}  // namespace

std::optional<std::string> computation_problem(const LayersSettings& layers) {
  if (layers.optimizer == Optimizer::lamb) return "optimizer lamb is not computed; sgd, momentum and adam are";
  const bool is_single = layers.dtype == DType::f32 || layers.dtype == DType::f64;
  if (!is_single || layers.parameter_type() != layers.storage()) {
    return "values are computed in f32 or f64, parameters in the same type";
  }
  const auto discards = [](const Layer& layer) {
    return layer.again == Layer::Again::operations || layer.again == Layer::Again::all_but_product;
  };
  if (std::ranges::any_of(layers.model.layers, discards)) {
    return "layers that are computed are computed again as a whole, with what follows their products";
  }
  if (layers.variables_are_tensors) return "parameters that are computed are variables by bucket";
  if (auto problem = flow_problem(layers.model)) return problem;
  const std::optional<Layer::Embedding>& table = layers.model.layers.front().embedding;
  if (!table) return fmt::format("model '{}' cannot be computed: it has no embedding for tokens", layers.model.name);
  const std::int64_t classes = layers.model.layers.back().gemm->columns;
  if (classes >= kBytes) return std::nullopt;
  return fmt::format("tokens are bytes, and model '{}' tells {} of {} apart", layers.model.name, classes, kBytes);
}

namespace {

// A distributed optimizer divides the table that the first and the last stage share, apart from what follows it there.
std::optional<DivisionProblem> tied_table_problem(const Model& model, const ParallelOptions& options) {
  if (options.pipeline == 1 || options.ends_meet() || !options.distributed_optimizer) return std::nullopt;
  const auto shares = std::ranges::find_if(model.layers, &Layer::shared_weights);
  if (shares == model.layers.end()) return std::nullopt;
  const std::int64_t elements = shares->gemm->depth * shares->gemm->columns / options.tensor;
  const std::int64_t devices = std::int64_t{options.data} * options.context / options.replicate;
  if (elements % devices == 0) return std::nullopt;
  return DivisionProblem{"strategy.distributed_optimizer",
                         fmt::format("{} devices do not divide the {} elements of the table that layer '{}' shares",
                                     devices, elements, shares->name)};
}

// Tensor-parallel devices have parts of weights, which blocks must divide.
std::optional<DivisionProblem> block_problem(const LayersSettings& layers, const ParallelOptions& options) {
  const std::int64_t block = dividing_block(layers.quantised);
  for (const Layer& layer : layers.model.layers) {
    if (!layer.can_be_quantised() || layer.divided_by() == Layer::Split::none) continue;
    const bool by_columns = layer.split == Layer::Split::columns;
    const int parts = has_experts(layer) ? options.expert_parts() : options.tensor;
    const std::int64_t side = (by_columns ? layer.gemm->columns : layer.gemm->depth) / parts;
    if (side % block == 0) continue;
    return DivisionProblem{
        "strategy.tensor",
        fmt::format("{} tensor-parallel devices have {} {} of layer '{}' each, which blocks of {} do not divide", parts,
                    side, by_columns ? "outputs" : "inputs", layer.name, block)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<DivisionProblem> computed_division_problem(const LayersSettings& layers, const ParallelOptions& options) {
  const Model& model = layers.model;
  if (auto problem = tied_table_problem(model, options)) return problem;
  if (auto problem = block_problem(layers, options)) return problem;
  const std::vector<LayerFlow> flows = flow_of(model);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const auto unless_divisible = [&](std::int64_t count, const char* what) -> std::optional<DivisionProblem> {
      if (count % options.tensor == 0) return std::nullopt;
      return DivisionProblem{"strategy.tensor",
                             fmt::format("{} tensor-parallel devices do not divide the {} {} of layer '{}'",
                                         options.tensor, count, what, model.layers[i].name)};
    };
    if (flows[i].kind == LayerFlow::Kind::scores) {
      if (auto problem = unless_divisible(flows[i].heads->groups(), "heads of keys")) return problem;
    }
    if (flows[i].kind != LayerFlow::Kind::table) continue;
    if (auto problem = unless_divisible(flows[i].words, "rows of words")) return problem;
    const std::int64_t others = model.layers[i].embedding->entries - flows[i].words;
    if (auto problem = unless_divisible(others, "rows of positions")) return problem;
  }
  return std::nullopt;
}

ComputedModel::ComputedModel(Worker& worker, LayersSettings layers, const ComputedSettings& settings,
                             std::unique_ptr<TrainingData> data)
    : worker_(worker),
      layers_(std::move(layers)),
      learning_(settings),
      flows_(flow_of(layers_.model)),
      data_(std::move(data)) {}

std::vector<std::unique_ptr<StageModel>> ComputedModel::make_stages(Device& device, Device& host,
                                                                    std::span<const StagePart> parts) {
  std::vector<std::unique_ptr<StageModel>> stages;
  for (const StagePart& part : parts) {
    stages.push_back(std::make_unique<ComputedStage>(layers_.model, layers_, learning_, flows_, part, device, host));
  }
  return stages;
}

void ComputedModel::make_batch(int step, Device& /*host*/) {
  batch_ = data_->batch(step, worker_);
}

FirstValues ComputedModel::first_values(std::size_t layer, const StagePart& part) const {
  const Layer mine = divided_layer(layers_.model.layers[layer], part.division, part.tensor_part);
  if (mine.parameters() == 0 && !mine.embedding) return {};
  std::vector<ValuesAt> values;
  std::int64_t first = 0;
  if (!mine.shared_weights && !mine.routing) {
    values.push_back({.first = 0, .values = weights(layer, part)});
    first = mine.tensors.front();
  }
  add_operations(mine, first, values);
  return joined(std::move(values));
}

// Returns the values of the device's part of a matrix of weights, or of its rows of a table.
FirstValues ComputedModel::weights(std::size_t layer, const StagePart& part) const {
  const Layer& whole = layers_.model.layers[layer];
  const FirstValues all = weight_values(layer);
  const int parts = part.division.parts_of(whole), mine = part.tensor_part % parts;
  if (whole.embedding) {
    const std::int64_t columns = whole.embedding->columns, words = flows_[layer].words;
    const Range my_words = part_of(words, parts, mine);
    const Range others = part_of(whole.embedding->entries - words, parts, mine);
    return [=](std::int64_t element) {
      const std::int64_t row = element / columns;
      const std::int64_t of_whole =
          row < my_words.count ? my_words.first + row : words + others.first + row - my_words.count;
      return all(of_whole * columns + element % columns);
    };
  }
  const Layer::Gemm& gemm = *whole.gemm;
  const Range rows = whole.divided_by() == Layer::Split::rows ? part_of(gemm.depth, parts, mine) : Range{0, gemm.depth};
  const Range columns =
      whole.divided_by() == Layer::Split::columns ? part_of(gemm.columns, parts, mine) : Range{0, gemm.columns};
  const std::int64_t first_expert =
      has_experts(whole) ? part_of(gemm.experts, part.division.expert, part.expert_part).first : 0;
  return [=, all_rows = gemm.depth, all_columns = gemm.columns](std::int64_t element) {
    const std::int64_t row = element / columns.count;
    const std::int64_t first_row = (first_expert + row / rows.count) * all_rows + rows.first;
    return all((first_row + row % rows.count) * all_columns + columns.first + element % columns.count);
  };
}

FirstValues ComputedModel::weight_values(std::size_t layer) const {
  const Layer& whole = layers_.model.layers[layer];
  const std::uint64_t seed = learning_.seed + layer;
  if (layers_.model.divides_unevenly) return he_uniform(whole.gemm->depth, whole.tensors.front(), seed);
  const double limit = kDeviation * std::sqrt(3.0);
  return [=](std::int64_t element) {
    const std::uint32_t word = drawn_word(seed, static_cast<std::uint64_t>(element));
    return (2 * (static_cast<double>(word) * 0x1p-32) - 1) * limit;
  };
}

}  // namespace tandem
