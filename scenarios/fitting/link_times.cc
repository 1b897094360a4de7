#include "scenarios/fitting/link_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "engine/engine_info.h"
#include "scenarios/collectives/collective_job.h"
#include "topologies/generators/cluster.h"

namespace tandem {
namespace {

bool has_gpus(const Topology& topology) {
  return topology.worker_count() > 0 && !topology.nodes_of(0, NodeKind::gpu).empty();
}

// Returns null if the topology is not a cluster of so many machines, and cannot be made into one.
std::shared_ptr<const Topology> machines_of(const Topology& topology, int nodes) {
  if (nodes <= topology.worker_count()) return std::make_shared<const Topology>(topology);
  if (topology.worker_count() != 1) return nullptr;
  try {
    return std::make_shared<const Topology>(make_cluster(topology, nodes));
  } catch (const Error&) {
    return nullptr;  // a machine without network ports
  }
}

std::vector<double> simulated(const std::shared_ptr<const Topology>& topology, CollectiveKind kind, int devices,
                              int nodes, const std::vector<double>& bytes) {
  CollectiveJob job;
  job.engine = model_engine().name;
  job.topology = topology;
  job.device_type = DeviceType::gpu;
  job.workers = nodes;
  job.devices = devices / nodes;
  CollectiveSweep sweep;
  sweep.kind = kind;
  sweep.warmup = 0;
  sweep.iterations = 1;
  for (const double size : bytes) sweep.sizes.push_back(std::llround(size));
  std::map<double, double> times;  // by bytes, which the sweep rounds down
  for (const CollectiveRow& row : run_collective(job, sweep).table.rows) {
    times[static_cast<double>(row.bytes)] = row.time_us() * 1e-6;
  }
  std::vector<double> result;
  for (const double size : bytes) {
    const auto after = times.upper_bound(size);
    result.push_back(after == times.begin() ? 0 : std::prev(after)->second);
  }
  return result;
}

}  // namespace

LinkTimes link_times_of(const Topology& topology) {
  if (!has_gpus(topology)) return {};
  Topology unmeasured = topology;
  unmeasured.facts().collectives = {};
  return [unmeasured](CollectiveKind kind, int devices, int nodes, const std::vector<double>& bytes) {
    const auto machines = devices % nodes == 0 ? machines_of(unmeasured, nodes) : nullptr;
    return machines ? simulated(machines, kind, devices, nodes, bytes) : std::vector<double>{};
  };
}

}  // namespace tandem
