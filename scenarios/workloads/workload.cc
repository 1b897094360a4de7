#include "scenarios/workloads/workload.h"

#include "scenarios/workloads/layers.h"
#include "scenarios/workloads/mlp.h"

namespace tandem {

std::unique_ptr<Workload> make_workload(const WorkloadSettings& settings, Strategy& strategy) {
  if (const auto* mlp = std::get_if<MlpSettings>(&settings.kind)) {
    return std::make_unique<MlpWorkload>(*mlp, settings.batch, strategy);
  }
  return std::make_unique<LayersWorkload>(std::get<LayersSettings>(settings.kind), settings.batch, strategy);
}

}  // namespace tandem
