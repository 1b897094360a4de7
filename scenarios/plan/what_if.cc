#include "scenarios/plan/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scenarios/reading/scenario_document.h"
#include "scenarios/sweep/point_runner.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr double kMoreMemory = 1e9;  // bytes
constexpr double kFasterLinks = 2;

enum class Part : std::uint8_t { memory, network, nvlink };

struct NamedPart {
  const char* word;
  Part part;
  const char* figure;  // its key in overrides
  const char* change;
  const char* missing;  // what a topology without it lacks
};

constexpr NamedPart kParts[] = {
    {"memory", Part::memory, "memory", "1 GB more memory of each GPU", "no GPU whose memory it states"},
    {"network", Part::network, "bandwidth", "twice the bandwidth of the network", "no network"},
    {"nvlink", Part::nvlink, "bandwidth", "twice the bandwidth of NVLink", "no NVLink"},
};

// New values of one figure, by the names of the device or link models that have it.
using NewFigures = std::map<std::string, std::string>;

NewFigures more_memory(const Topology& topology) {
  NewFigures figures;
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    const Node node = topology.node(index);
    if (node.kind != NodeKind::gpu || !node.device || node.device->memory_bytes.value <= 0) continue;
    figures[node.device->id] = fmt::format("{:.0f}B", node.device->memory_bytes.value + kMoreMemory);
  }
  return figures;
}

NewFigures faster_links(const Topology& topology, LinkKind kind) {
  NewFigures figures;
  const auto add = [&](const LinkModel& model) {
    if (model.kind != kind) return;
    figures[model.id] = fmt::format("{:.0f}B/s", model.bandwidth_bytes_per_s.value * kFasterLinks);
  };
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    if (const Node node = topology.node(index); node.port) add(*node.port);
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) add(topology.link_model(index));
  return figures;
}

NewFigures figures_of(Part part, const Topology& topology) {
  switch (part) {
    case Part::memory:
      return more_memory(topology);
    case Part::network:
      return faster_links(topology, LinkKind::network);
    case Part::nvlink:
      return faster_links(topology, LinkKind::nvlink);
  }
  TANDEM_UNREACHABLE("a part of a machine");
}

// The figures as overrides of the scenario's topology, beside those that it has.
std::vector<ScenarioSetting> settings_of(const NamedPart& part, const NewFigures& figures, const Scenario& scenario) {
  const std::string name = std::string("--what-if ") + part.word;
  const YamlNode& root = scenario.document->root();
  const YamlNode* topology = node_at(root, "topology");
  std::vector<ScenarioSetting> settings;
  if (topology->kind == YamlKind::scalar)
    settings.push_back({name, "topology", fmt::format("{{based_on: \"{}\"}}", topology->text)});
  const char* const cluster = node_at(root, "topology.cluster") != nullptr ? "cluster." : "";
  for (const auto& [model, value] : figures)
    settings.push_back({name, fmt::format("topology.{}overrides.\"{}\".{}", cluster, model, part.figure), value});
  return settings;
}

[[noreturn]] void refuse_what_if(const std::string& word, const std::string& message) {
  throw InputError({{.file = "--what-if " + word, .path = "", .message = message}});
}

// Returns nothing where the topology does not have the part.
std::vector<ScenarioSetting> settings_of(const NamedPart& part, const Scenario& scenario) {
  if (!scenario.topology || node_at(scenario.document->root(), "topology") == nullptr)
    refuse_what_if(part.word, "the scenario names no topology");
  const auto is_of_topology = [](const SweepAxis& axis) { return axis.path.starts_with("topology"); };
  if (scenario.sweep && std::ranges::any_of(scenario.sweep->axes, is_of_topology))
    refuse_what_if(part.word, "the space has several topologies; plan for one of them");
  const NewFigures figures = figures_of(part.part, *scenario.topology);
  return figures.empty() ? std::vector<ScenarioSetting>{} : settings_of(part, figures, scenario);
}

WhatIf of_setting(const std::string& word, const Scenario& scenario) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const auto is_key = [&key](const SweepAxis& axis) { return axis.path == key; };
  if (scenario.sweep && std::ranges::any_of(scenario.sweep->axes, is_key))
    refuse_what_if(word, fmt::format("the space has values of {}, among which the best is found", key));
  return {.change = word, .settings = {{"--what-if " + word, key, word.substr(equals + 1)}}};
}

bool is_same(const PlanTable& one, std::size_t place, const PlanTable& other, std::size_t other_place) {
  return one.sweep.points[place].values == other.sweep.points[other_place].values;
}

}  // namespace

std::vector<WhatIf> what_ifs(const std::vector<std::string>& words, const Scenario& scenario) {
  std::vector<WhatIf> changes;
  for (const std::string& word : words) {
    if (word.find('=') != std::string::npos) {
      changes.push_back(of_setting(word, scenario));
      continue;
    }
    bool is_known = false;
    for (const NamedPart& part : kParts) {
      if (word != part.word && word != "machine") continue;
      is_known = true;
      std::vector<ScenarioSetting> settings = settings_of(part, scenario);
      if (!settings.empty()) {
        changes.push_back({.change = part.change, .settings = std::move(settings)});
      } else if (word == part.word) {
        refuse_what_if(word, fmt::format("the topology has {}", part.missing));
      }
    }
    if (!is_known) refuse_what_if(word, "expected memory, network, nvlink, machine (all three) or KEY=VALUE");
  }
  for (const WhatIf& change : changes) changed_scenario(scenario, change.settings);  // throws before a search does
  return changes;
}

void add_what_ifs(const std::vector<WhatIf>& changes, const Scenario& scenario,
                  const std::function<PlanTable(const WhatIf& change, const Scenario& changed)>& plan,
                  PlanTable& table) {
  const std::vector<std::size_t> ranks = table.ranking();
  if (ranks.empty()) return;
  for (const WhatIf& change : changes) {
    OtherPlan other{.change = change.change};
    try {
      const PlanTable found = plan(change, changed_scenario(scenario, change.settings));
      const std::vector<std::size_t> places = found.ranking();
      if (places.empty()) {
        other.problem = "no point has a result";
      } else {
        other.best = found.sweep.points[places.front()];
        other.value = found.value(places.front());
        other.gap = found.gap();
        other.is_same_point = is_same(found, places.front(), table, ranks.front());
      }
    } catch (const InputError& error) {
      other.problem = text_of_problems(error);
    }
    table.others.push_back(std::move(other));
  }
}

}  // namespace tandem
