#include "strategies/parallel/layout/shared_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tandem {
namespace {

bool is_router(const Layer& layer) {
  return layer.gemm && !layer.gemm->batched && std::ranges::count(layer.then, Pointwise::softmax) > 0;
}

// Returns the shared expert before `dispatch`, if there is one.
std::optional<SharedExpert> before_dispatch(std::span<const Layer> layers, std::size_t dispatch) {
  std::size_t first = dispatch;
  const auto is_of_block = [&](const Layer& layer) { return layer.block == layers[dispatch].block; };
  while (first > 0 && is_of_block(layers[first - 1]) && layers[first - 1].gemm && !is_router(layers[first - 1])) {
    --first;
  }
  if (first == 0 || first == dispatch || !is_of_block(layers[first - 1]) || !is_router(layers[first - 1])) {
    return std::nullopt;
  }
  SharedExpert expert{.first = first, .activated = first, .end = dispatch, .first_of_experts = dispatch + 1};
  for (std::size_t i = first; i < dispatch; ++i) {
    if (has_activation(layers[i])) expert.activated = i + 1;
  }
  expert.last_of_experts = dispatch + 1;
  while (expert.last_of_experts + 1 < layers.size() && is_of_experts(layers[expert.last_of_experts + 1])) {
    ++expert.last_of_experts;
  }
  return expert;
}

}  // namespace

std::vector<std::size_t> SharedExpert::beside_exchanges() const {
  std::vector<std::size_t> layers = {first_of_experts, last_of_experts};
  for (std::size_t i = first; i < end; ++i) layers.push_back(i);
  return layers;
}

std::vector<SharedExpert> shared_experts(std::span<const Layer> layers) {
  std::vector<SharedExpert> all;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    if (!layers[i].routing || !is_of_experts(layers[i + 1])) continue;
    if (const auto expert = before_dispatch(layers, i)) all.push_back(*expert);
  }
  return all;
}

std::optional<DivisionProblem> shared_expert_problem(const Model& model, const ParallelOptions& options) {
  if (!options.overlap_shared_expert) return std::nullopt;
  const auto is_problem = [](std::string text) {
    return DivisionProblem{"strategy.overlap_shared_expert", std::move(text)};
  };
  if (options.expert == 1) return is_problem("nothing is exchanged without devices along expert");
  const bool is_dual_pipe = options.order == PipelineOrder::dual_pipe || options.order == PipelineOrder::dual_pipe_v;
  if (options.overlap_experts || is_dual_pipe) {
    return is_problem(fmt::format("is for exchanges that no other pass hides; {} hides them",
                                  is_dual_pipe ? name_of(options.order) : "overlap_experts"));
  }
  if (!shared_experts(model.layers).empty()) return std::nullopt;
  return is_problem(
      fmt::format("model '{}' has no shared expert: no layers between a router and `dispatch`", model.name));
}

}  // namespace tandem
