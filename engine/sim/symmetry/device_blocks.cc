#include "engine/sim/symmetry/device_blocks.h"

#include <algorithm>
#include <set>

#include "engine/sim/symmetry/faulty_parts.h"

namespace tandem::sim::symmetry {
namespace {

bool has_equal_gpus(const Topology& topology, const WorkerSpec& spec, int size) {
  if (spec.device_type != DeviceType::gpu) return false;
  const std::vector<NodeIndex> gpus = topology.nodes_of(spec.topology_worker, NodeKind::gpu);
  if (static_cast<std::size_t>(spec.device_count) > gpus.size()) return false;
  for (int i = 0; i < spec.device_count; ++i) {
    const auto at = [&](int place) { return topology.device(gpus[static_cast<std::size_t>(place)]).get(); };
    if (at(i) != at(i / size * size)) return false;
  }
  return true;
}

}  // namespace

DeviceBlocks::DeviceBlocks(const EngineOptions& options) : size_(options.alike_devices) {
  std::set<int> machines;
  for (const WorkerSpec& spec : options.workers) machines.insert(spec.topology_worker);
  if (machines.size() != options.workers.size() || devices_differ_by_faults(options)) size_ = 1;
  const auto are_equal = [&] {
    return std::ranges::all_of(options.workers,
                               [&](const WorkerSpec& spec) { return has_equal_gpus(*options.topology, spec, size_); });
  };
  while (size_ > 1 && !are_equal()) shrink();
}

void DeviceBlocks::shrink() {
  const int whole = size_;
  while (--size_ > 1 && whole % size_ != 0) continue;
}

}  // namespace tandem::sim::symmetry
