#include "engine/sim/sim_engine.h"

#include "engine/sim/placement.h"
#include "engine/sim/sim_run.h"
#include "engine/sim/simgrid_compat.h"

namespace tandem {
namespace {

std::vector<Hardware> hardware_of(const Topology& topology, int worker) {
  std::vector<Hardware> hardware;
  for (const auto& [kind, type] : {std::pair{NodeKind::cpu, DeviceType::cpu}, {NodeKind::gpu, DeviceType::gpu}}) {
    for (const NodeIndex node : topology.nodes_of(worker, kind)) {
      const auto& model = topology.node(node).device;
      if (!model) continue;
      hardware.push_back({type, model->name, model->cores, model->memory_bytes.value});
    }
  }
  return hardware;
}

Capabilities capabilities_of(const EngineOptions& options) {
  const bool carries_values = options.values.value_or(ValueMode::none) == ValueMode::real;
  Capabilities capabilities;
  capabilities.engine = sim_engine_info().name;
  capabilities.carries_values = carries_values;
  capabilities.deterministic = true;
  capabilities.host_functions_reach_devices = true;
  capabilities.remote_devices = true;
  capabilities.seeded_schedule = true;
  capabilities.dtypes = {DType::f64, DType::f32, DType::i64, DType::i32, DType::u8};
  if (!carries_values) capabilities.dtypes.insert(capabilities.dtypes.begin() + 2, {DType::f16, DType::bf16});
  capabilities.gemm_dtypes = {DType::f64, DType::f32, DType::tf32};
  if (!carries_values) capabilities.gemm_dtypes.insert(capabilities.gemm_dtypes.end(), {DType::f16, DType::bf16});
  capabilities.device_types = {DeviceType::cpu, DeviceType::gpu};
  capabilities.hardware = hardware_of(*options.topology, options.workers.front().topology_worker);
  return capabilities;
}

class SimEngine : public Engine {
 public:
  explicit SimEngine(EngineOptions options) : options_(std::move(options)), capabilities_(capabilities_of(options_)) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  Timeline run(const Program& program) override { return sim::SimRun(options_, capabilities_).execute(program); }

 private:
  EngineOptions options_;
  Capabilities capabilities_;
};

}  // namespace

std::unique_ptr<Engine> open_sim_engine(EngineOptions options) {
  sim::place_devices(options);  // throws
  return std::make_unique<SimEngine>(std::move(options));
}

LibraryVersions sim_libraries() {
  return {{"simgrid", simgrid_compat::version_text()}};
}

}  // namespace tandem
