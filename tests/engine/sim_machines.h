// Small machines with round figures, so that times can be stated as closed forms.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/sim/sim_engine.h"

namespace tandem {

inline constexpr double kLinkBytesPerS = 10e9;
inline constexpr double kLinkLatencyS = 2e-6;
inline constexpr double kFlopsPerS = 1e12;
inline constexpr double kMemoryBytesPerS = 1e12;

inline Figure vendor(double value) {
  return {.value = value, .provenance = Provenance::vendor, .source = "test"};
}

inline DeviceModel device_model(std::string name, int cores, int copy_engines) {
  DeviceModel model;
  model.name = std::move(name);
  model.cores = cores;
  model.copy_engines = copy_engines;
  model.peak_flops_per_s = {{DType::f32, vendor(kFlopsPerS)}};
  model.memory_bandwidth_bytes_per_s = vendor(kMemoryBytesPerS);
  model.memory_bytes = vendor(0);
  model.launch_overhead_s = vendor(0);
  model.op_overhead_s = vendor(0);
  model.synchronize_s = vendor(0);
  model.gemm_efficiency = vendor(1);
  return model;
}

inline std::shared_ptr<const LinkModel> link_model(double bytes_per_s = kLinkBytesPerS,
                                                   double latency_s = kLinkLatencyS,
                                                   LinkKind kind = LinkKind::network) {
  LinkModel model{kind, vendor(bytes_per_s), vendor(latency_s)};
  model.remote_call_s = model.remote_call_bytes_per_s = {};  // no servers' software
  return std::make_shared<LinkModel>(std::move(model));
}

// `workers` machines of one CPU and one GPU. Every GPU and CPU hangs on a switch by a link of its own; of a GPU
// whose index is in `slow` the link has a tenth of the bandwidth.
struct StarOptions {
  int workers = 2;
  DeviceModel gpu = device_model("test GPU", 1, 2);
  DeviceModel cpu = device_model("test CPU", 4, 0);
  double bytes_per_s = kLinkBytesPerS;
  double latency_s = kLinkLatencyS;
  std::vector<int> slow{};
};

inline std::shared_ptr<Topology> make_star(const StarOptions& options = {}) {
  auto topology = std::make_shared<Topology>("star");
  const auto gpu = std::make_shared<const DeviceModel>(options.gpu);
  const auto cpu = std::make_shared<const DeviceModel>(options.cpu);
  const auto link = link_model(options.bytes_per_s, options.latency_s);
  const auto slow_link = link_model(options.bytes_per_s / 10, options.latency_s);
  const NodeIndex middle = topology->add_node({.name = "switch", .kind = NodeKind::network_switch});
  for (int worker = 0; worker < options.workers; ++worker) {
    const bool is_slow = std::count(options.slow.begin(), options.slow.end(), worker) > 0;
    const std::string prefix = "w" + std::to_string(worker) + ".";
    const NodeIndex cpu_node =
        topology->add_node({.name = prefix + "cpu0", .kind = NodeKind::cpu, .worker = worker, .device = cpu});
    const NodeIndex gpu_node =
        topology->add_node({.name = prefix + "gpu0", .kind = NodeKind::gpu, .worker = worker, .device = gpu});
    topology->add_link(cpu_node, middle, link);
    topology->add_link(gpu_node, middle, is_slow ? slow_link : link);
  }
  return topology;
}

// One machine with one CPU.
inline std::shared_ptr<Topology> make_cpu(DeviceModel model) {
  auto topology = std::make_shared<Topology>("cpu");
  topology->add_node({.name = "w0.cpu0",
                      .kind = NodeKind::cpu,
                      .worker = 0,
                      .device = std::make_shared<const DeviceModel>(std::move(model))});
  return topology;
}

inline EngineOptions gpu_workers(std::shared_ptr<const Topology> topology, int workers, int devices_each = 1) {
  EngineOptions options;
  options.workers.clear();
  for (int i = 0; i < workers; ++i) {
    options.workers.push_back(
        {.task = i, .topology_worker = i, .device_type = DeviceType::gpu, .device_count = devices_each});
  }
  options.topology = std::move(topology);
  return options;
}

inline EngineOptions cpu_worker(std::shared_ptr<const Topology> topology, int devices) {
  EngineOptions options;
  options.workers = {{.job = "localhost", .device_count = devices}};
  options.topology = std::move(topology);
  return options;
}

inline DeviceId gpu_of(int task, int index = 0) {
  return {"worker", task, DeviceType::gpu, index};
}

inline std::vector<DeviceId> gpus_of(int workers, int devices_each = 1) {
  std::vector<DeviceId> ids;
  for (int task = 0; task < workers; ++task) {
    for (int index = 0; index < devices_each; ++index) ids.push_back(gpu_of(task, index));
  }
  return ids;
}

}  // namespace tandem
