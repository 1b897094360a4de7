#include "scenarios/estimates/expected_error.h"

#include <algorithm>
#include <set>

#include "reports/base/size_bands.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

// A catalog may have measured overheads and efficiencies of a device; those rest on its stated peak rates.
bool is_measured(const DeviceModel& device) {
  const auto measured = [](const Figure& figure) { return figure.provenance == Provenance::measured; };
  return measured(device.memory_bandwidth_bytes_per_s) && !device.peak_flops_per_s.empty() &&
         std::all_of(device.peak_flops_per_s.begin(), device.peak_flops_per_s.end(),
                     [&](const auto& peak) { return measured(peak.second); });
}

bool are_devices_measured(const Topology& topology, const std::set<int>& machines, NodeKind kind) {
  std::set<const DeviceModel*> devices;
  for (const int machine : machines) {
    for (const NodeIndex node : topology.nodes_of(machine, kind)) {
      if (const auto& device = topology.device(node)) devices.insert(device.get());
    }
  }
  return !devices.empty() &&
         std::all_of(devices.begin(), devices.end(), [](const DeviceModel* device) { return is_measured(*device); });
}

}  // namespace

std::string compared_as(const std::string& strategy) {
  switch (strategy_info(strategy).compared_as) {
    case ComparedRuns::none:
      return "";
    case ComparedRuns::replicas:
      return "replicas";
    case ComparedRuns::mesh:
      return "mesh";
    case ComparedRuns::sharded:
      return "sharded";
    case ComparedRuns::servers:
      return "servers";
    case ComparedRuns::central:
      break;
  }
  return "central";
}

PredictionKind prediction_kind(const Job& job, const std::optional<SharedCores>& cores) {
  TANDEM_REQUIRE(job.scenario.topology != nullptr, "a prediction without a topology");
  const Topology& topology = *job.scenario.topology;
  std::set<int> machines;
  for (int worker = 0; worker < job.workers; ++worker) {
    machines.insert(job.tasks.at(static_cast<std::size_t>(worker)).topology_worker);
  }
  const bool on_gpus = job.scenario.devices.type == DeviceType::gpu;
  PredictionKind kind{.strategy = compared_as(job.strategy.name),
                      .devices = static_cast<int>(job.devices),
                      .nodes = static_cast<int>(machines.size()),
                      .on_gpus = on_gpus,
                      .is_short_of_cores = cores && cores->are_short(),
                      .is_layers = job.layers != nullptr};
  if (topology.provenance() == Provenance::measured) {
    kind.figures = FigureBasis::calibrated;
  } else if (are_devices_measured(topology, machines, on_gpus ? NodeKind::gpu : NodeKind::cpu)) {
    kind.figures = FigureBasis::fitted;
  }
  return kind;
}

std::vector<SizesError> expected_errors(const Topology& topology, int machines, const CollectiveTable& predicted) {
  const auto is_measured = [&](const CollectiveSample& sample) { return sample.operation == predicted.operation; };
  const FigureBasis figures =
      std::ranges::any_of(topology.facts().collectives, is_measured) ? FigureBasis::calibrated : FigureBasis::stated;
  std::set<std::size_t> bands;
  for (const CollectiveRow& row : predicted.rows) bands.insert(size_band_of(row.bytes));
  std::vector<SizesError> errors;
  for (const std::size_t band : bands) {
    errors.push_back({std::string(kSizeBands[band].name),
                      error_band_of(PredictionRows{collective_group(topology, machines), band}, figures)});
  }
  return errors;
}

PredictionGroup collective_group(const Topology& topology, int machines) {
  bool has_nvlink = false, has_rdma = false;
  for (LinkIndex i = 0; i < topology.link_count() && !(has_nvlink && has_rdma); ++i) {
    const LinkModel& link = topology.link_model(i);
    has_nvlink |= link.kind == LinkKind::nvlink;
    has_rdma |= link.kind == LinkKind::network && (link.transport == "infiniband" || link.transport == "roce");
  }
  if (machines > 1 && machines > topology.facts().nvlink_domain)
    return has_rdma ? PredictionGroup::collectives_rdma : PredictionGroup::collectives_other_networks;
  return has_nvlink ? PredictionGroup::collectives_nvlink : PredictionGroup::collectives_pcie;
}

}  // namespace tandem
