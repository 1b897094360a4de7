#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topologies/views/paths.h"
#include "topologies/views/topology_text.h"

namespace tandem {
namespace {

// No link of today is outside of these.
constexpr double kLeastRate = 1e6;    // 8 Mb/s
constexpr double kMostRate = 20e12;   // NCCL's rate of what costs nothing is 5 TB/s
constexpr double kMostLatency = 0.1;  // seconds

class Check {
 public:
  explicit Check(const Topology& topology) : topology_(topology), matrix_(paths_of(topology, 0)) {}

  std::vector<TopologyFinding> find() {
    check_rates();
    check_gpus();
    check_nics();
    check_twins();
    return std::move(findings_);
  }

 private:
  template <typename... Arguments>
  void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    findings_.push_back({true, fmt::format(format, std::forward<Arguments>(arguments)...)});
  }
  template <typename... Arguments>
  void missing(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    findings_.push_back({false, fmt::format(format, std::forward<Arguments>(arguments)...)});
  }

  std::string name(std::size_t device) const { return topology_.node(matrix_.devices[device]).name; }
  bool is_gpu(std::size_t device) const { return topology_.kind(matrix_.devices[device]) == NodeKind::gpu; }

  void check_rates() {
    std::map<const LinkModel*, bool> seen;
    for (LinkIndex index = 0; index < topology_.link_count(); ++index) {
      const LinkModel& model = topology_.link_model(index);
      if (!seen.emplace(&model, true).second) continue;
      const double rate = model.bandwidth_bytes_per_s.value;
      const double latency_s = model.latency_s.value;
      const std::string id = model.id.empty() ? std::string(name_of(model.kind)) : model.id;
      if (rate < kLeastRate || rate > kMostRate) problem("link model '{}' has {:.4g} GB/s", id, rate / 1e9);
      if (latency_s > kMostLatency) problem("link model '{}' has a latency of {:.4g} s", id, latency_s);
      if (model.kind == LinkKind::network && latency_s == 0) missing("link model '{}' has no latency", id);
    }
  }

  void check_gpus() {
    if (topology_.nodes_of(0, NodeKind::gpu).empty()) missing("the machine has no GPU");
    std::map<const DeviceModel*, bool> seen;
    for (std::size_t i = 0; i < matrix_.devices.size(); ++i) {
      if (!is_gpu(i)) continue;
      const auto& device = topology_.device(matrix_.devices[i]);
      if (device && seen.emplace(device.get(), true).second) check_device(*device);
      for (std::size_t j = 0; j < i; ++j) {
        if (is_gpu(j) && matrix_.between(i, j).type == PathType::none) {
          problem("no path between '{}' and '{}'", name(j), name(i));
        }
      }
    }
  }

  void check_device(const DeviceModel& device) {
    if (device.architecture.empty()) missing("'{}' has no architecture, which NCCL's choices need", device.name);
    if (device.memory_bytes.value == 0) missing("'{}' has no size of memory", device.name);
    if (device.peak_flops_per_s.empty() && device.rates.empty()) missing("'{}' has no peak rate", device.name);
  }

  void check_nics() {
    for (std::size_t nic = 0; nic < matrix_.devices.size(); ++nic) {
      if (is_gpu(nic)) continue;
      const auto port = topology_.node(matrix_.devices[nic]).port;
      if (!port) missing("NIC '{}' has no port: it joins no cluster", name(nic));
      bool is_connected = nic == 0 || !is_gpu(0);
      for (std::size_t gpu = 0; gpu < matrix_.devices.size() && is_gpu(gpu); ++gpu) {
        is_connected = is_connected || matrix_.between(gpu, nic).type != PathType::none;
      }
      if (!is_connected) problem("NIC '{}' is not connected to any GPU", name(nic));
      if (!port || !is_connected) continue;
      check_nearest(nic, port->bandwidth_bytes_per_s.value);
    }
  }

  // The GPU beside a NIC should reach it as fast as the NIC's port.
  void check_nearest(std::size_t nic, double port) {
    for (std::size_t gpu = 0; gpu < matrix_.devices.size() && is_gpu(gpu); ++gpu) {
      const auto nearest = nearest_nics(topology_, matrix_, gpu);
      if (std::find(nearest.begin(), nearest.end(), nic) == nearest.end()) continue;
      const Path& path = matrix_.between(gpu, nic);
      if (path.type > PathType::switches || path.bandwidth_bytes_per_s >= port * 0.9) continue;
      return problem("'{}' reaches its NIC '{}' with {:.4g} GB/s, less than the {:.4g} GB/s of its port", name(gpu),
                     name(nic), path.bandwidth_bytes_per_s / 1e9, port / 1e9);
    }
  }

  void check_twins() {
    std::map<double, std::vector<std::string>> nvlinks, lanes;
    for (const NodeIndex gpu : topology_.nodes_of(0, NodeKind::gpu)) {
      nvlinks[nvlink_rate_of(topology_, gpu)].push_back(topology_.node(gpu).name);
      lanes[pcie_rate_of(topology_, gpu)].push_back(topology_.node(gpu).name);
    }
    report_twins(nvlinks, "NVLink");
    report_twins(lanes, "PCIe");
  }

  void report_twins(const std::map<double, std::vector<std::string>>& groups, std::string_view what) {
    if (groups.size() < 2) return;
    const auto& [most, most_names] = *groups.rbegin();
    for (const auto& [rate, names] : groups) {
      if (rate > most * 0.99) continue;
      problem("'{}' has {:.4g} GB/s of {}, its twin '{}' {:.4g} GB/s ({} GPUs have less)", names.front(), rate / 1e9,
              what, most_names.front(), most / 1e9, names.size());
    }
  }

  const Topology& topology_;
  PathMatrix matrix_;
  std::vector<TopologyFinding> findings_{};
};

}  // namespace

std::vector<TopologyFinding> check_topology(const Topology& topology) {
  return Check(topology).find();
}

}  // namespace tandem
