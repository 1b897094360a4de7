#include "scenarios/calibration/program.h"

#include "scenarios/calibration/stages.h"

namespace tandem::calibration {

int places_of(const Capabilities& capabilities, DeviceType type) {
  const auto count = std::count_if(capabilities.hardware.begin(), capabilities.hardware.end(),
                                   [type](const Hardware& hardware) { return hardware.type == type; });
  return std::max(1, static_cast<int>(count));
}

void run_program(Worker& worker, const Plan& plan, const Parts& parts, Findings& findings,
                 const std::function<void(std::string_view stage)>& stage) {
  stage("warming up");
  warm_up(worker, plan);
  {
    stage("launching");
    Blocker blocker(worker, plan);
    measure_overheads(worker, plan, blocker, findings);
    if (parts.concurrent_copies) measure_overlap(worker, plan, findings);
  }
  if (parts.work) {
    stage("GEMM");
    measure_products(worker, plan, findings);
    stage("memory");
    measure_memory(worker, plan);
    measure_kernels(worker, plan);
    stage("copies");
    measure_local_copies(worker, plan);
  }
  if (parts.in_use) {
    stage("memory in use");
    measure_in_use(worker, plan);
  }
  if (!parts.routes.empty()) {
    stage("links");
    measure_routes(worker, plan, parts.routes);
  }
  if (parts.collectives) {
    stage("collectives");
    measure_collectives(worker, plan);
  }
  if (parts.slowdown) {
    stage("products beside collectives");
    measure_slowdown(worker, plan, findings);
  }
}

}  // namespace tandem::calibration
