#include "scenarios/workloads/mlp_layers.h"

#include <fmt/format.h>

namespace tandem {

LayersSettings layers_of(const MlpSettings& mlp) {
  LayersSettings settings;
  settings.bucket_bytes = 1;
  settings.optimizer = mlp.momentum > 0 ? Optimizer::momentum : Optimizer::sgd;
  Model& model = settings.model;
  model.name = "mlp";
  model.unit = "examples";
  model.divides_unevenly = true;
  model.input_elements = mlp.rows->columns;
  std::int64_t inputs = mlp.rows->columns;
  const std::size_t count = mlp.hidden.size() + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    const std::int64_t outputs = is_last ? mlp.rows->classes : mlp.hidden[i];
    Layer layer;
    layer.name = fmt::format("dense {}", i);
    layer.gemm = Layer::Gemm{.rows = 1, .columns = outputs, .depth = inputs, .input_elements = inputs};
    layer.then = {Pointwise::bias, is_last ? Pointwise::cross_entropy : Pointwise::relu};
    layer.tensors = {inputs * outputs, outputs};
    layer.split = (count - 1 - i) % 2 == 0 ? Layer::Split::rows : Layer::Split::columns;
    model.layers.push_back(std::move(layer));
    inputs = outputs;
  }
  return settings;
}

LayersSettings layers_of(const WorkloadSettings& workload) {
  const auto* mlp = std::get_if<MlpSettings>(&workload.kind);
  return mlp != nullptr ? layers_of(*mlp) : std::get<LayersSettings>(workload.kind);
}

}  // namespace tandem
