#include "scenarios/plan/plan_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "scenarios/job/tasks.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/joined_machines.h"

namespace tandem {
namespace {

// The largest sizes that are tried.
struct Largest {
  static constexpr int kContext = 16;               // devices that divide a sequence
  static constexpr std::int64_t kPartTokens = 512;  // the smallest part of one
  static constexpr int kVirtualStages = 8;
  static constexpr int kMicroBatches = 512;
  static constexpr int kPasses = 64;  // over which gradients are accumulated
  static constexpr int kServers = 16;
  static constexpr std::size_t kExpertSizes = 8;
};

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t one = 1; one <= std::min(number, most); ++one) {
    if (number % one == 0) all.push_back(one);
  }
  return all;
}

// What a model lets strategies divide.
struct Sizes {
  std::int64_t blocks = 1, tokens = 1, experts = 1;

  explicit Sizes(const Model& model) {
    std::set<std::pair<std::string, std::int64_t>> seen;
    for (const Layer& layer : model.layers) {
      if (layer.block) seen.emplace(layer.block->group, layer.block->copy);
      if (layer.routing) experts = std::max(experts, layer.routing->experts);
      if (layer.embedding) tokens = std::max(tokens, layer.embedding->rows);
    }
    blocks = std::max<std::int64_t>(1, static_cast<std::int64_t>(seen.size()));
  }
};

bool states_memory(const Topology* topology) {
  if (topology == nullptr) return false;
  const std::vector<NodeIndex> gpus = topology->nodes_of(0, NodeKind::gpu);
  if (gpus.empty()) return false;
  const Node gpu = topology->node(gpus.front());
  return gpu.device && gpu.device->memory_bytes.value > 0;
}

// The text of a `sweep:`.
class Space {
 public:
  template <typename Value>
  void add(const std::string& field, const std::vector<Value>& values) {
    if (!values.empty()) values_.push_back(fmt::format("{}: [{}]", field, fmt::join(values, ", ")));
  }
  void where(std::string condition) { where_.push_back("\"" + std::move(condition) + "\""); }
  std::string text() const {
    const std::string conditions = where_.empty() ? "" : fmt::format(", where: [{}]", fmt::join(where_, ", "));
    return fmt::format("{{values: {{{}}}{}}}", fmt::join(values_, ", "), conditions);
  }

 private:
  std::vector<std::string> values_, where_;
};

class UsualSpace {
 public:
  UsualSpace(const Scenario& scenario, const SpaceChoices& choices)
      : scenario_(scenario), choices_(choices), machines_(machines_of(scenario, choices)) {
    if (const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind)) sizes_.emplace(layers->model);
    for (const MachineChoice& one : machines_) {
      const int most = *std::ranges::max_element(one.workers);
      most_workers_ = std::max(most_workers_, most);
      devices_ = std::max(devices_, most * one.per_worker);
      joined_devices_ = std::max(joined_devices_, std::min(most, one.joined) * one.per_worker);
    }
    for (const std::string& name : named()) {
      (strategy_info(name).has_free_mesh() ? meshes_ : others_).push_back(name);
    }
  }

  std::string text() {
    add_machines();
    std::vector<std::string> names = meshes_;
    names.insert(names.end(), others_.begin(), others_.end());
    space_.add("strategy.name", names);
    if (!meshes_.empty()) add_meshes();
    if (!others_.empty()) add_passes();
    add_servers();
    if (sizes_ && sizes_->blocks > 1) space_.add<std::string>("workload.activation_checkpointing", {"false", "true"});
    add_reserve();
    return space_.text();
  }

 private:
  static std::vector<MachineChoice> machines_of(const Scenario& scenario, const SpaceChoices& choices) {
    if (!choices.machines.empty()) return choices.machines;
    return {{.per_worker = scenario.devices.per_worker,
             .workers = {training_workers(scenario)},
             .joined = scenario.topology ? joined_machines(*scenario.topology) : 1}};
  }

  void add_machines() {
    std::set<int> workers, per_worker;
    std::vector<std::string> nodes, conditions;
    for (const MachineChoice& one : machines_) {
      workers.insert(one.workers.begin(), one.workers.end());
      per_worker.insert(one.per_worker);
      nodes.push_back(fmt::format("\"{}\"", one.node));
      std::vector<std::string> counts;
      for (const int count : one.workers) counts.push_back(fmt::format("devices.workers == {}", count));
      conditions.push_back(fmt::format("topology.cluster.node == '{}' and devices.per_worker == {} and ({})", one.node,
                                       one.per_worker, fmt::join(counts, " or ")));
    }
    const bool has_several = machines_.size() > 1;
    if (has_several) space_.add("topology.cluster.node", nodes);
    if (has_several || workers.size() > 1)
      space_.add("devices.workers", std::vector<int>(workers.begin(), workers.end()));
    if (!has_several) return;
    space_.add("devices.per_worker", std::vector<int>(per_worker.begin(), per_worker.end()));
    space_.where(fmt::format("{}", fmt::join(conditions, " or ")));
  }

  bool may_run(const StrategyInfo& info) const {
    if (info.one_device) return devices_ == 1;
    if (!info.several_workers && most_workers_ > 1) return false;
    if (info.parameter_servers == ServerUse::required) return most_workers_ > 1;
    if (!info.division) return true;
    if (info.has_free_mesh()) return sizes_ && sizes_->blocks > 1 && devices_ > 1;
    // A mesh has layers and stages on all devices among its sizes.
    return info.division->axis == &ParallelOptions::data || info.is_registered;
  }

  std::vector<std::string> named() const {
    if (!choices_.strategies.empty()) {
      for (const std::string& name : choices_.strategies) strategy_info(name);  // throws where there is none
      return choices_.strategies;
    }
    std::vector<std::string> names;
    for (const std::string& name : strategy_names()) {
      if (may_run(strategy_info(name))) names.push_back(name);
    }
    return names;
  }

  // "strategy == 'a' or strategy == 'b'"; "" where all strategies are among them.
  static std::string among(const std::vector<std::string>& names, const std::vector<std::string>& others) {
    if (others.empty()) return "";
    std::vector<std::string> texts;
    for (const std::string& name : names) texts.push_back(fmt::format("strategy == '{}'", name));
    return fmt::format("({})", fmt::join(texts, " or "));
  }

  // What meshes must meet, and what other strategies must.
  void where_mesh(const std::string& of_mesh, const std::string& of_others) {
    if (others_.empty()) return space_.where(of_mesh);
    const std::string is_mesh = among(meshes_, others_);
    space_.where(fmt::format("{0} and ({1}) or not {0} and ({2})", is_mesh, of_mesh, of_others));
  }

  void add_meshes() {
    const std::int64_t batch = scenario_.workload.batch;
    space_.add("strategy.data", divisors(devices_, batch));
    space_.add("strategy.tensor", divisors(devices_, joined_devices_));
    if (machines_.size() > 1) {
      std::vector<std::string> joined;
      for (const MachineChoice& one : machines_)
        joined.push_back(fmt::format("topology.cluster.node == '{}' and tensor <= {}", one.node,
                                     std::min(*std::ranges::max_element(one.workers), one.joined) * one.per_worker));
      space_.where(fmt::format("{}", fmt::join(joined, " or ")));
    }
    space_.add("strategy.context",
               divisors(devices_, std::min<std::int64_t>(Largest::kContext, sizes_->tokens / Largest::kPartTokens)));
    space_.add("strategy.pipeline", divisors(devices_, sizes_->blocks));
    // Where all devices are joined, one of them is as near as another.
    if (devices_ > joined_devices_) {
      std::vector<std::string> orders;
      for (const auto& [name, order] : axis_orders()) orders.push_back(name);
      space_.add("strategy.axis_order", orders);
      const std::string is_usual = fmt::format("strategy.axis_order == '{}'", orders.front());
      where_mesh(fmt::format("{} or pipeline > 1 and data > 1", is_usual), is_usual);
    }
    const bool has_experts = sizes_->experts > 1;
    where_mesh("data * tensor * context * pipeline == devices", "data * tensor * context * pipeline == 1");
    if (has_experts) {
      std::vector<std::int64_t> sizes = divisors(sizes_->experts, devices_);
      if (sizes.size() > Largest::kExpertSizes) sizes.erase(sizes.begin() + 1, sizes.end() - Largest::kExpertSizes + 1);
      space_.add("strategy.expert", sizes);
      where_mesh("data * context % expert == 0", "expert == 1");
    }
    space_.add("strategy.virtual_stages", divisors(sizes_->blocks, Largest::kVirtualStages));
    space_.add("strategy.micro_batches", divisors(batch, Largest::kMicroBatches));
    where_mesh(fmt::format("pipeline * virtual_stages <= {}", sizes_->blocks), "virtual_stages == 1");
    where_mesh(
        "(pipeline > 1 or virtual_stages == 1) and (virtual_stages == 1 or micro_batches % pipeline == 0) and batch % "
        "data == 0 and batch / data % micro_batches == 0",
        "virtual_stages * micro_batches == 1");
    space_.add<std::string>("strategy.stage_blocks", {"balanced"});
    space_.add<std::string>("workload.sequence_parallel", {"false", "true"});
    space_.where("workload.sequence_parallel == (tensor > 1)");
    if (scenario_.strategy.mesh.shard_parameters) return;  // which divides the optimizer's state, too
    if (others_.empty()) return space_.add<std::string>("strategy.distributed_optimizer", {"true"});
    space_.add<std::string>("strategy.distributed_optimizer", {"false", "true"});
    space_.where(fmt::format("strategy.distributed_optimizer == {}", among(meshes_, others_)));
  }

  // What contexts of libraries and fragments of memory take (docs/workloads.md), where the scenario says nothing of it.
  void add_reserve() {
    const bool says = scenario_.document && node_at(scenario_.document->root(), "devices.reserved") != nullptr;
    if (sizes_ && !says && states_memory(scenario_.topology.get()))
      space_.add<std::string>("devices.reserved", {"{bytes: 1.5GB, share: 0.05}"});
  }

  // Strategies that replicate the model, or divide it equally, go through their part of the batch in passes.
  void add_passes() {
    if (!sizes_) return;
    const std::int64_t examples = scenario_.workload.batch / std::max(1, devices_);
    space_.add("workload.gradient_accumulation_steps", divisors(std::max<std::int64_t>(1, examples), Largest::kPasses));
    if (!meshes_.empty()) where_mesh("gradient_accumulation_steps == 1", "true");
  }

  void add_servers() {
    std::vector<std::string> with, without;
    for (const std::string& name : others_) {
      (strategy_info(name).parameter_servers == ServerUse::required ? with : without).push_back(name);
    }
    without.insert(without.end(), meshes_.begin(), meshes_.end());
    if (with.empty()) return;
    std::vector<int> servers{0};
    for (int count = 1; count <= std::min(Largest::kServers, most_workers_); count *= 2) servers.push_back(count);
    space_.add("devices.ps", servers);
    space_.where(without.empty() ? "servers > 0" : fmt::format("(servers > 0) == {}", among(with, without)));
  }

  const Scenario& scenario_;
  const SpaceChoices& choices_;
  std::optional<Sizes> sizes_;  // of layers
  std::vector<MachineChoice> machines_;
  int most_workers_ = 1, devices_ = 1, joined_devices_ = 1;  // of the machines with most of them
  std::vector<std::string> meshes_, others_;
  Space space_;
};

}  // namespace

std::string usual_space(const Scenario& scenario, const SpaceChoices& choices) {
  return UsualSpace(scenario, choices).text();
}

}  // namespace tandem
