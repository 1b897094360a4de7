// What a user writes about a cluster, and the figures of machines: every key of a fabric and every override changes the
// results of a run, is refused, or is named in a note; and every figure of a machine decides something in some run.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>

#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/silent_keys.h"
#include "topologies/figures.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

constexpr const char* kMachine = "hgx-h100";

// Scenarios on two of these machines, with and without collectives over the network.
std::map<std::string, std::string> jobs(const std::string& machine = kMachine, const std::string& devices = "gpu") {
  const std::string small =
      "workload: {kind: layers, model: gpt, sizes: {tokens: 128, hidden: 256, heads: 4, layers: 2, vocabulary: 4096}, "
      "batch: 64, bucket_bytes: 256kB}\n";
  const std::string mlp = "workload: {kind: mlp, hidden: [256, 128], batch: 256}\n";
  const auto job = [&](const std::string& workload, const char* strategy, const char* engine) {
    return fmt::format(
        "name: base\n{}strategy: {{name: {}}}\ntopology: {{cluster: {{node: {}, workers: 2}}}}\ndevices: {{type: {}}}\n"
        "engine: {{{}}}\nsteps: 2\nwarmup_steps: 1\n",
        workload, strategy, machine, devices, engine);
  };
  return {{"mirrored", job(small, "multi_worker_mirrored", "name: sim")},
          {"servers", job(mlp, "parameter_server", "name: sim")},
          {"message", job(mlp, "multi_worker_mirrored", "name: sim, collectives: message")},
          {"graphs", job(small, "fully_sharded", "name: sim, graphs: true")}};
}

void expect_no_silence(const std::string& name, const std::string& text, const std::string& key,
                       const std::vector<std::string>& values) {
  static Scenarios runs;
  static std::map<std::string, Answer> known;
  const auto [before, is_new] = known.try_emplace(text);
  if (is_new) before->second = runs.run(text);
  ASSERT_FALSE(before->second.is_refused) << name << ": " << before->second.refusal;
  bool is_silent = true;
  for (const std::string& value : values) {
    if (Scenarios::has(text, key, value)) return;
    const Effect effect = runs.effect(text, before->second, key, value);
    EXPECT_NE(effect, Effect::wrong) << name << ": " << key << ": " << value << " is said to change nothing";
    is_silent = is_silent && effect == Effect::silent;
  }
  // Steps of calls that have all links to themselves take the time of their plan by whatever NICs.
  // Nor do calls of servers, which are slower than the links.
  const bool has_links_to_itself = name.starts_with("message") || name.starts_with("servers");
  if (has_links_to_itself && key == "topology.cluster.fabric.rails") return;
  EXPECT_FALSE(is_silent) << name << ": " << key << ": " << values.front() << " changes nothing";
}

TEST(SilentKeys, NoKeyOfAFabricIsSilentlyUnused) {
  const std::map<std::string, std::vector<std::string>> rows{
      {"kind", {"leaf_spine"}},
      {"latency", {"100us"}},
      {"hop_latency", {"100us"}},
      {"advertised_latency", {"10ms"}},
      {"nic_bandwidth", {"1GB/s"}},
      {"transport", {"socket", "efa"}},
      {"workers_per_leaf", {"1"}},
      {"spines", {"1", "1024"}},
      {"oversubscription", {"1000"}},
      {"leaves_per_pod", {"1"}},
      {"cores_per_spine", {"1024"}},
      {"core_oversubscription", {"1000"}},
      {"rails", {"true"}},
      {"nics", {"[nic0]"}},
      {"dimensions", {"[2, 2]"}},
  };
  const std::vector<std::string> fabrics{"{kind: switch}",
                                         "{kind: leaf_spine}",
                                         "{kind: leaf_spine, workers_per_leaf: 1}",
                                         "{kind: rail}",
                                         "{kind: fat_tree, workers_per_leaf: 1, leaves_per_pod: 1}",
                                         "{kind: torus, dimensions: [2]}",
                                         "{kind: dragonfly, workers_per_leaf: 1, leaves_per_pod: 1}"};
  for (const auto& [name, text] : jobs()) {
    if (name == "graphs") continue;
    for (const std::string& fabric : fabrics) {
      std::string with_fabric = text;
      with_fabric.replace(text.find("workers: 2"), 10, "workers: 2, fabric: " + fabric);
      for (const auto& [key, values] : rows) {
        if (key == "rails" && fabric.find("fat_tree") != std::string::npos)
          continue;  // every machine has leaves of its own
        expect_no_silence(name + " on " + fabric, with_fabric, "topology.cluster.fabric." + key, values);
      }
    }
  }
}

// The models of a machine, and the keys of their figures with other values, in base units.
std::map<std::string, std::map<std::string, std::vector<std::string>>> figures_of(const Topology& machine) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> models;
  const auto add = [&](const std::string& id, std::string_view key, double value, double unknown) {
    const double now = value > 0 ? value : unknown;
    models[id][std::string(key)] = {fmt::format("{:.6g}", now * 4), fmt::format("{:.6g}", now / 4),
                                    fmt::format("{:.6g}", now / 1e4), fmt::format("{:.6g}", now * 1e4)};
  };
  const auto add_link = [&](const LinkModel& link) {
    for (const auto& [key, figure] : kLinkFigures) {
      const bool is_of_networks = key == "hop_latency" || key == "advertised_latency" || key.starts_with("remote_call");
      if (is_of_networks && link.kind != LinkKind::network) continue;
      add(link.id, key, (link.*figure).value, 1e-4);
    }
  };
  for (NodeIndex index = 0; index < machine.node_count(); ++index) {
    if (const auto port = machine.node(index).port) add_link(*port);
    const auto& device = machine.device(index);
    if (!device) continue;
    for (const auto& [key, figure] : kDeviceFigures) add(device->id, key, (device.get()->*figure).value, 1e-4);
    for (const auto& [dtype, peak] : device->peak_flops_per_s) {
      add(device->id, fmt::format("peak_flops.{}", name_of(dtype)), peak.value, 1);
    }
    models[device->id]["gemm_efficiency"] = {"0.00001"};
    models[device->id]["sustained"] = {"0.00001"};
    models[device->id]["sustained_quantised"] = {"0.00001"};
    models[device->id]["memory"] = {"1000"};
    for (const char* overhead :
         {"launch_overhead", "op_overhead", "synchronize", "wake_up", "wake_call", "hand_over", "input_element"}) {
      models[device->id][overhead] = {"0.01"};
    }
    models[device->id]["collective_slowdown"] = {"4"};
    models[device->id]["boost_clock"] = {"1e8"};
    models[device->id]["multiprocessors"] = {"8"};
    models[device->id]["cores"] = {"1", "2"};
  }
  for (LinkIndex index = 0; index < machine.link_count(); ++index) add_link(machine.link_model(index));
  return models;
}

TEST(SilentKeys, NoOverrideIsSilentlyUnused) {
  for (const auto& [name, text] : jobs()) {
    for (const auto& [id, figures] : figures_of(load_catalog_node(kMachine))) {
      for (const auto& [key, values] : figures) {
        expect_no_silence(name, text, fmt::format("topology.cluster.overrides.{}.{}", id, key), values);
      }
    }
  }
}

TEST(SilentKeys, EveryFigureOfAMachineDecidesSomethingInSomeRun) {
  Scenarios runs;
  std::set<std::string> consulted;
  const auto run = [&](const std::string& text) {
    const Answer answer = runs.run(text);
    EXPECT_FALSE(answer.is_refused) << text << answer.refusal;
    for (const std::string& input : answer.consulted) consulted.insert(input.substr(input.find('.') + 1));
  };
  for (const char* machine : {kMachine, "cpu-host"}) {
    for (const auto& [name, text] : jobs(machine, machine == kMachine ? "gpu" : "cpu")) run(text);
  }
  std::string stated = jobs().at("graphs");
  stated.replace(stated.find("workers: 2"), 10,
                 "workers: 2, overrides: {gpu: {graph_op_overhead: 1us, graph_launch_overhead: 1us, "
                 "collective_slowdown: 2}}");
  run(stated);
  std::string plug_in = jobs().at("mirrored");  // which NCCL heeds where it would take Simple
  plug_in.replace(plug_in.find("workers: 2"), 10, "workers: 2, overrides: {network: {advertised_latency: 1ms}}");
  plug_in.replace(plug_in.find("256kB"), 5, "64MB");
  run(plug_in);
  std::string halves = jobs().at("mirrored");  // on matrix units
  halves.replace(halves.find("batch: 64"), 9, "batch: 64, dtype: f16");
  run(halves);
  std::string bytes = jobs().at("graphs");
  bytes.replace(bytes.find("model: gpt"), 10, "model: gpt, dtype: bf16, precision: {compute: fp8}");
  run(bytes);
  std::string threads = jobs("cpu-host", "cpu").begin()->second;
  threads.replace(threads.find("workers: 2"), 10, "workers: 2, overrides: {cpu: {wake_up: 20us}}");
  run(threads);
  for (const auto& [key, figure] : kDeviceFigures) EXPECT_TRUE(consulted.contains(std::string(key))) << key;
  for (const auto& [key, figure] : kLinkFigures) EXPECT_TRUE(consulted.contains(std::string(key))) << key;
  for (const char* key : {"architecture", "copy_engines", "multiprocessors", "transport"}) {
    EXPECT_TRUE(consulted.contains(key)) << key;
  }
}

}  // namespace
}  // namespace tandem
