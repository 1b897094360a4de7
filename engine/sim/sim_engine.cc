#include "engine/sim/sim_engine.h"

#include <algorithm>

#include "engine/sim/base/simgrid_compat.h"
#include "engine/sim/collectives/nccl/selection.h"
#include "engine/sim/placement.h"
#include "engine/sim/sim_run.h"
#include "engine/sim/symmetry/symmetry.h"
#include "engine/sim/turn_watch.h"

namespace tandem {
namespace {

using NvLinks = std::vector<std::pair<NodeIndex, NodeIndex>>;

NvLinks nvlinks_of(const Topology& topology, int worker) {
  NvLinks links;
  const auto see = [&](LinkIndex index) {
    if (topology.link_model(index).kind != LinkKind::nvlink) return;
    const Link link = topology.link(index);
    if (topology.worker(link.from) == worker && topology.worker(link.to) == worker) {
      links.emplace_back(link.from, link.to);
    }
  };
  if (worker < topology.machine_count()) {
    const LinkIndex first = static_cast<LinkIndex>(worker) * topology.links_of_machine();
    for (LinkIndex i = 0; i < topology.links_of_machine(); ++i) see(first + i);
  }
  for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) see(index);
  return links;
}

// Returns the nodes that `from` reaches over NVLink alone, itself included: neighbours, and nodes behind NVSwitches.
std::vector<NodeIndex> nvlink_reach(const Topology& topology, const NvLinks& links, NodeIndex from) {
  std::vector<NodeIndex> reached = {from};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (i > 0 && topology.kind(reached[i]) != NodeKind::nvswitch) continue;
    for (const auto& [one, other] : links) {
      if (one != reached[i] && other != reached[i]) continue;
      const NodeIndex next = one == reached[i] ? other : one;
      if (std::find(reached.begin(), reached.end(), next) == reached.end()) reached.push_back(next);
    }
  }
  return reached;
}

// Returns the indices in `gpus` of those to which gpus[gpu] has a direct link.
std::vector<int> direct_links(const Topology& topology, const NvLinks& links, const std::vector<NodeIndex>& gpus,
                              std::size_t gpu) {
  const std::vector<NodeIndex> reached = nvlink_reach(topology, links, gpus[gpu]);
  std::vector<int> peers;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const bool is_reached = std::find(reached.begin(), reached.end(), gpus[i]) != reached.end();
    if (i != gpu && is_reached) peers.push_back(static_cast<int>(i));
  }
  return peers;
}

std::vector<Hardware> hardware_of(const Topology& topology, int worker) {
  std::vector<Hardware> hardware;
  const NvLinks nvlinks = nvlinks_of(topology, worker);
  for (const auto& [kind, type] : {std::pair{NodeKind::cpu, DeviceType::cpu}, {NodeKind::gpu, DeviceType::gpu}}) {
    const std::vector<NodeIndex> nodes = topology.nodes_of(worker, kind);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& model = topology.device(nodes[i]);
      if (!model) continue;
      Hardware& one = hardware.emplace_back();
      one.type = type;
      one.name = model->name;
      one.cores = model->cores;
      one.memory_bytes = model->memory_bytes.value;
      if (type == DeviceType::gpu) one.links = direct_links(topology, nvlinks, nodes, i);
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
  capabilities.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8};
  capabilities.gemm_dtypes = {DType::f64, DType::f32, DType::tf32};
  if (!carries_values) capabilities.gemm_dtypes.insert(capabilities.gemm_dtypes.end(), {DType::f16, DType::bf16});
  capabilities.device_types = {DeviceType::cpu, DeviceType::gpu};
  capabilities.hardware = hardware_of(*options.topology, options.workers.front().topology_worker);
  return capabilities;
}

class SimEngine : public Engine {
 public:
  explicit SimEngine(EngineOptions options)
      : options_(std::move(options)), capabilities_(capabilities_of(options_)), known_(options_) {
    if (sim::symmetry::Symmetry::is_possible(options_)) {
      symmetry_ = std::make_unique<sim::symmetry::Symmetry>(options_);
    }
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  Timeline run(const Program& program) override {
    Timeline timeline = symmetry_ && symmetry_->begin_run()
                            ? run_some(program)
                            : sim::SimRun(options_, capabilities_, known_).run(program, watchdog_s_);
    if (symmetry_ && !symmetry_->note().empty()) timeline.notes.push_back(symmetry_->note());
    return timeline;
  }

 private:
  // If a run fails, it is repeated with every worker, so that the error names all workers concerned.
  Timeline run_some(const Program& program) {
    try {
      return sim::SimRun(options_, capabilities_, known_, symmetry_.get()).run(program, watchdog_s_);
    } catch (const sim::symmetry::Again&) {
    } catch (...) {
      symmetry_->turn_off("");
    }
    throw RunAgain();
  }

  EngineOptions options_;
  Capabilities capabilities_;
  sim::KnownTopology known_;
  const double watchdog_s_ = sim::sim_watchdog_s();
  std::unique_ptr<sim::symmetry::Symmetry> symmetry_;  // null: every worker runs
};

}  // namespace

std::unique_ptr<Engine> open_sim_engine(EngineOptions options) {
  sim::place_devices(options, [](const sim::PlacedDevice&) {});  // throws
  sim::nccl::settings_of(options.nccl);                          // throws
  return std::make_unique<SimEngine>(std::move(options));
}

LibraryVersions sim_libraries() {
  return {{"simgrid", simgrid_compat::version_text()}};
}

}  // namespace tandem
