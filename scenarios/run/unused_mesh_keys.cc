#include "scenarios/run/unused_mesh_keys.h"

#include <algorithm>

#include "scenarios/workloads/mlp_layers.h"
#include "strategies/model/experts.h"
#include "strategies/parallel/layout/layer_division.h"

namespace tandem {

std::string why_mesh_scatter_gather(const Job& job) {
  if (!job.divides_model) return "";
  const ParallelOptions& options = *job.mesh;
  if (options.tensor == 1 || options.stages() == 1) return "needs devices along both tensor and pipeline";
  const LayersSettings layers = layers_of(job.scenario.workload);
  if (layers.sequence_parallel) return "with sequence_parallel every device has rows of its own to send";
  const std::vector<std::size_t> first = first_layers_of_stages(layers.model, options.stages(), options.stage_blocks);
  const bool has_parts = std::all_of(first.begin() + 1, first.end() - 1,
                                     [&](std::size_t layer) { return has_parts_between(layers.model.layers, layer); });
  return has_parts ? "every device has columns of its own to send" : "";
}

std::string why_mesh_optimizer(const Job& job) {
  if (!job.divides_model) return "";
  const ParallelOptions& options = *job.mesh;
  return options.data * options.context > 1 ? "" : "no two devices have the same parameters";
}

std::string why_mesh_dispatch(const Job& job) {
  const bool divides = job.mesh && job.mesh->expert > 1;
  return divides ? "" : "no devices divide experts (strategy.expert)";
}

std::string why_mesh_expert_tensor(const Job& job) {
  if (job.layers == nullptr || std::ranges::none_of(job.layers->model.layers, has_experts)) {
    return "the model has no experts";
  }
  return job.mesh && job.mesh->tensor > 1 ? "" : "no layer is divided among devices (strategy.tensor)";
}

std::string why_mesh_context_exchange(const Job& job) {
  const bool divides = job.mesh && job.mesh->context > 1;
  return divides ? "" : "no devices divide sequences (strategy.context)";
}

std::string why_mesh_axis_order(const Job& job) {
  const ParallelOptions& options = *job.mesh;
  return options.pipeline > 1 && options.data > 1 ? "" : "needs devices along both pipeline and data";
}

}  // namespace tandem
