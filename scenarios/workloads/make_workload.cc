#include "scenarios/workloads/layers.h"
#include "scenarios/workloads/mlp.h"
#include "scenarios/workloads/trainable.h"
#include "scenarios/workloads/workload.h"

namespace tandem {

std::unique_ptr<Workload> make_workload(const WorkloadSettings& settings, Strategy& strategy) {
  if (const auto* mlp = std::get_if<MlpSettings>(&settings.kind)) {
    return std::make_unique<MlpWorkload>(*mlp, settings.batch, strategy);
  }
  const bool are_tensors = std::get<LayersSettings>(settings.kind).variables_are_tensors;
  return std::make_unique<LayersWorkload>(trainable_model(settings, strategy.extended().worker()), are_tensors,
                                          settings.batch, strategy);
}

}  // namespace tandem
