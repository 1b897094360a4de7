#include "strategies/parallel/offload_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "strategies/model/offload.h"

namespace tandem {
namespace {

// A stage has at least as many blocks as the one with fewest; more than any has are a mistake.
std::optional<std::string> offloaded_blocks_problem(const DivisionRequest& request,
                                                    std::span<const std::size_t> first) {
  const int blocks = request.settings.offload.blocks;
  if (blocks == 0) return std::nullopt;
  const std::span<const Layer> layers = request.model.layers;
  std::ptrdiff_t most = 0;
  for (std::size_t stage = 0; stage + 1 < first.size(); ++stage) {
    const auto segments = offload_segments(layers.subspan(first[stage], first[stage + 1] - first[stage]), blocks);
    most = std::max(most, std::ranges::count(segments, true, &OffloadSegment::is_offloaded));
  }
  if (most == 0) return fmt::format("model '{}' has no groups of layers that repeat", request.model.name);
  if (most < blocks) return fmt::format("{} blocks are more than the {} of a stage", blocks, most);
  return std::nullopt;
}

}  // namespace

std::optional<DivisionProblem> offload_problem(const DivisionRequest& request, std::span<const std::size_t> first) {
  const auto& [model, settings, options] = request;
  if (auto problem = offloaded_blocks_problem(request, first))
    return DivisionProblem{"workload.offload.activations", std::move(*problem)};
  if (settings.offload.blocks > 0 && options.order != PipelineOrder::one_forward_one_backward) {
    return DivisionProblem{"workload.offload.activations",
                           fmt::format("{} keeps what gradients of weights read", name_of(options.order))};
  }
  if (settings.offload.optimizer == 0) return std::nullopt;
  if (options.shard_parameters) {
    return DivisionProblem{"workload.offload.optimizer",
                           "is for parameters that are whole, not for pieces (strategy.shard_parameters)"};
  }
  if (settings.optimizer == Optimizer::sgd) {
    return DivisionProblem{"workload.offload.optimizer", "optimizer sgd keeps nothing; momentum, adam and lamb do"};
  }
  return std::nullopt;
}

}  // namespace tandem
