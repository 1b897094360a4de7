// The worlds every conformance test runs in: each engine that was built, in each way it can be asked to work.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_info.h"

namespace tandem {

struct World {
  std::string name;  // suffix of test names: "cpu", "cuda_graphs", "mpi_gpus", "sim_fluid", "sim_message", "sim_seed_1"
  std::string engine;
  std::optional<CollectiveFidelity> collectives{};
  std::optional<std::uint64_t> schedule_seed{};
  DeviceType compute_devices = DeviceType::cpu;
  bool graphs = false;
};

inline std::ostream& operator<<(std::ostream& out, const World& world) {
  return out << world.name;
}

// A model of a machine is asked in each way that could make a difference; what conforms does so in any order of tasks.
inline std::vector<World> worlds_of_model(const EngineInfo& engine) {
  const std::string name(engine.name);
  std::vector<World> worlds = {{name + "_fluid", name, CollectiveFidelity::fluid, {}, DeviceType::gpu},
                               {name + "_message", name, CollectiveFidelity::message, {}, DeviceType::gpu}};
  for (const std::uint64_t seed : {1, 2, 3}) {
    worlds.push_back({name + "_seed_" + std::to_string(seed), name, CollectiveFidelity::fluid, seed, DeviceType::gpu});
  }
  return worlds;
}

inline std::vector<World> built_worlds() {
  std::vector<World> worlds;
  for (const EngineInfo& engine : all_engines()) {
    if (!engine.built()) continue;
    if (engine.needs_topology) {
      for (World& world : worlds_of_model(engine)) worlds.push_back(std::move(world));
      continue;
    }
    const std::string name(engine.name);
    worlds.push_back({.name = name, .engine = name, .compute_devices = engine.default_device});
    const std::vector<DeviceType>& types = engine.device_types;
    const bool has_gpus = std::find(types.begin(), types.end(), DeviceType::gpu) != types.end();
    if (has_gpus && engine.default_device != DeviceType::gpu) {
      worlds.push_back({.name = name + "_gpus", .engine = name, .compute_devices = DeviceType::gpu});
    }
    if (engine.graphs) {
      worlds.push_back(
          {.name = name + "_graphs", .engine = name, .compute_devices = engine.default_device, .graphs = true});
    }
  }
  return worlds;
}

inline std::string name_of_world(const testing::TestParamInfo<World>& info) {
  return info.param.name;
}

// `workers` machines, each with a CPU, `gpus` GPUs and a NIC on one switch; the NICs on another. Round figures.
inline std::shared_ptr<const Topology> small_cluster(int workers, int gpus) {
  const auto figure = [](double value) { return Figure{.value = value, .source = "a test's round figure"}; };
  const auto model = [&](std::string name, int cores, int copy_engines) {
    DeviceModel device;
    device.name = std::move(name);
    device.cores = cores;
    device.copy_engines = copy_engines;
    device.peak_flops_per_s = {{DType::f32, figure(1e12)}, {DType::f64, figure(5e11)}};
    device.memory_bandwidth_bytes_per_s = figure(1e11);
    device.memory_bytes = figure(16e9);
    device.launch_overhead_s = figure(1e-6);
    device.op_overhead_s = figure(2e-6);
    device.synchronize_s = figure(3e-6);
    return std::make_shared<const DeviceModel>(std::move(device));
  };
  const auto link = [&](LinkKind kind, double bytes_per_s) {
    return std::make_shared<const LinkModel>(LinkModel{kind, figure(bytes_per_s), figure(1e-6)});
  };
  const auto cpu = model("conformance CPU", 8, 0);
  // Its architecture is known, so that the model of kernels by their shapes decides their times.
  DeviceModel described = *model("conformance GPU", 1, 2);
  described.architecture = "sm_80";
  described.multiprocessors = 64;
  const auto gpu = std::make_shared<const DeviceModel>(std::move(described));
  const auto pcie = link(LinkKind::pcie, 25e9), cable = link(LinkKind::network, 12.5e9);
  auto topology = std::make_shared<Topology>("conformance");
  const NodeIndex fabric = topology->add_node({.name = "fabric", .kind = NodeKind::network_switch});
  for (int worker = 0; worker < workers; ++worker) {
    std::string prefix = "w";
    prefix.append(std::to_string(worker)).append(".");
    const auto add = [&](const std::string& name, NodeKind kind, std::shared_ptr<const DeviceModel> device) {
      return topology->add_node({.name = prefix + name, .kind = kind, .worker = worker, .device = std::move(device)});
    };
    const NodeIndex inside = add("switch", NodeKind::pcie_switch, nullptr);
    topology->add_link(add("cpu0", NodeKind::cpu, cpu), inside, pcie);
    for (int i = 0; i < gpus; ++i) topology->add_link(add("gpu" + std::to_string(i), NodeKind::gpu, gpu), inside, pcie);
    const NodeIndex nic = add("nic0", NodeKind::nic, nullptr);
    topology->add_link(inside, nic, pcie);
    topology->add_link(nic, fabric, cable);
  }
  return topology;
}

// `workers` workers of `devices` compute devices each, with values: GPUs where the world has them, else CPUs.
inline EngineOptions world_options(const World& world, int workers, int devices) {
  EngineOptions options;
  options.workers.clear();
  const bool is_simulated = world.collectives.has_value();
  for (int task = 0; task < workers; ++task) {
    options.workers.push_back(
        {.task = task, .topology_worker = task, .device_type = world.compute_devices, .device_count = devices});
  }
  options.values = ValueMode::real;
  options.collectives = world.collectives;
  options.schedule_seed = world.schedule_seed;
  options.graphs = world.graphs;
  if (is_simulated) options.topology = small_cluster(workers, std::max(1, devices));
  return options;
}

inline std::unique_ptr<Engine> open_world(const World& world, int workers, int devices) {
  return open_engine(world.engine, world_options(world, workers, devices));
}

// Why this machine cannot run a world, "" where it can: an engine may be built where there is no GPU. What any other
// engine lacks is a failure.
inline std::string reason_to_skip(const World& world) {
  if (world.compute_devices != DeviceType::gpu || world.collectives) return "";
  try {
    open_world(world, 1, 1);
    return "";
  } catch (const UnavailableError& error) {
    return error.what();
  }
}

// Why no worker of a world reaches devices of others, "" where it does. Only GPUs of other processes may be out of
// reach.
inline std::string reason_not_to_reach_others(const World& world) {
  const auto engine = open_world(world, 2, 1);
  if (engine->capabilities().remote_devices || world.compute_devices != DeviceType::gpu) return "";
  return "engine '" + world.engine + "' reaches GPUs of other processes by collectives only";
}

// The base of tests that run in every world.
class InEveryWorld : public testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    if (const std::string reason = reason_to_skip(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// The base of tests that run in every world in which workers reach devices of others.
template <typename Base>
class ReachingOthers : public Base {
 protected:
  void SetUp() override {
    Base::SetUp();
    if (this->IsSkipped()) return;
    if (const std::string reason = reason_not_to_reach_others(this->GetParam()); !reason.empty())
      GTEST_SKIP() << reason;
  }
};

}  // namespace tandem
