#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/load.h"
#include "cli/base/output.h"
#include "cli/base/progress_line.h"
#include "engine/base/run_phase.h"
#include "topologies/base/machine_memory.h"
#include "topologies/base/shown.h"
#include "topologies/readers/hwloc_topology.h"
#include "topologies/readers/topology_yaml.h"
#include "topologies/views/machine_groups.h"
#include "topologies/views/paths.h"
#include "topologies/views/topology_text.h"
#include "topologies/views/writers.h"

namespace tandem {
namespace {

struct TopologyFlags {
  CommonOptions common;
  std::string action;
  std::string file;
  ImportOptions import;
  std::string format = "yaml";
  std::string svg;
};

nlohmann::ordered_json json_of(const Topology& topology, const std::vector<std::string>& notes) {
  const PathMatrix matrix = paths_of(topology, 0);
  nlohmann::ordered_json document = {{"name", topology.name()},
                                     {"machines", topology.worker_count()},
                                     {"gpus", topology.nodes_of(0, NodeKind::gpu).size()},
                                     {"nics", topology.nodes_of(0, NodeKind::nic).size()}};
  auto& paths = document["paths"] = nlohmann::ordered_json::array();
  for (std::size_t from = 0; from < matrix.devices.size(); ++from) {
    for (std::size_t to = 0; to < matrix.devices.size(); ++to) {
      if (from == to) continue;
      const Path& path = matrix.between(from, to);
      const auto& device = topology.device(matrix.devices[from]);
      paths.push_back({{"from", topology.node(matrix.devices[from]).name},
                       {"to", topology.node(matrix.devices[to]).name},
                       {"type", path_text(path, device && device->architecture.starts_with("gfx"))},
                       {"bandwidth_bytes_per_s", path.bandwidth_bytes_per_s},
                       {"latency_s", path.latency_s}});
    }
  }
  auto& bisection = document["bisection_bytes_per_s"];
  if (topology.node_count() <= kMostFlowNodes) {
    bisection = bisection_of(topology, topology.nodes_of(0, NodeKind::gpu)).bandwidth_bytes_per_s;
  }
  auto& groups = document["groups"] = nlohmann::ordered_json::array();
  for (const MachineGroup& group : groups_of_machines(topology)) {
    auto& one = groups.emplace_back(nlohmann::ordered_json{{"machines", text_of_workers(group.workers)},
                                                           {"count", group.workers.size()},
                                                           {"other_kind", group.is_other_kind}});
    one["odd"] = texts_of(group.differences);
  }
  document["provenance"] = name_of(topology.provenance());
  document["notes"] = notes;
  return document;
}

// What a command takes for each node, measured on 50,000 and 1,000,000 machines hgx-h100 (/usr/bin/time), 2026-11-25.
struct CostOfNode {
  double bytes = 0, seconds = 0;
};
constexpr CostOfNode kShown{150, 0.6e-6}, kChecked{20, 0.3e-6}, kConverted{150, 4e-6};

// Refuses a topology that this machine has no memory for, and tells those who wait what it takes.
void estimate(const Topology& topology, const CostOfNode& cost, ProgressLine& progress) {
  const auto nodes = static_cast<double>(topology.node_count());
  const int machines = topology.worker_count();
  const std::string what = fmt::format("{} machine{} with {:.0f} nodes", machines, machines == 1 ? "" : "s", nodes);
  check_memory(what, nodes * cost.bytes, "fewer machines need less");
  progress.begin(topology.name());
  if (const double seconds = nodes * cost.seconds; seconds >= 1) {
    tell_phase({.text = fmt::format("{} take about {:.0f} s", what, seconds)});
  }
}

int show(const TopologyFlags& flags) {
  const Output output(flags.common);
  const ImportedTopology imported = topology_named(flags.file, flags.import);
  ProgressLine progress(flags.common);
  estimate(imported.topology, kShown, progress);
  progress.finish();
  if (!flags.svg.empty()) write_file(flags.svg, topology_svg(imported.topology));
  if (output.json()) {
    output.write_json(json_of(imported.topology, imported.notes));
  } else {
    print_notes(imported.notes, flags.common);
    output.write_text(topology_text(imported.topology));
  }
  return kOk;
}

int convert(const TopologyFlags& flags) {
  const Output output(flags.common);
  const ImportedTopology imported = topology_named(flags.file, flags.import);
  print_notes(imported.notes, flags.common);
  ProgressLine progress(flags.common);
  estimate(imported.topology, kConverted, progress);
  progress.finish();
  output.write_document([&](std::ostream& text) {
    if (flags.format == "dot") return write_dot(imported.topology, text);
    if (flags.format == "graphml") return write_graphml(imported.topology, text);
    if (flags.format == "simgrid") return write_simgrid_xml(imported.topology, text);
    for (const std::string& note : imported.notes) text << "# " << shown(note) << "\n";
    write_topology_yaml(imported.topology, text);
  });
  return kOk;
}

int detect(const TopologyFlags& flags) {
  const Output output(flags.common);
  const ImportedTopology imported = detect_machine(flags.import);
  print_notes(imported.notes, flags.common);
  std::ostringstream text;
  for (const std::string& note : imported.notes) text << "# " << shown(note) << "\n";
  write_topology_yaml(imported.topology, text);
  output.write_document(text.str());
  return kOk;
}

int check_file(const TopologyFlags& flags) {
  const Output output(flags.common);
  const ImportedTopology imported = topology_named(flags.file, flags.import);
  ProgressLine progress(flags.common);
  estimate(imported.topology, kChecked, progress);
  const std::vector<TopologyFinding> findings = check_topology(imported.topology);
  std::string text;
  auto list = nlohmann::ordered_json::array();
  int problems = 0;
  const auto add = [&](const char* kind, const std::string& message) {
    text += fmt::format("{}: {}\n", kind, shown(message));
    list.push_back({{"kind", kind}, {"text", message}});
  };
  for (const std::string& note : imported.notes) add("note", note);
  for (const TopologyFinding& finding : findings) {
    add(finding.is_problem ? "implausible" : "missing", finding.text);
    problems += finding.is_problem ? 1 : 0;
  }
  text += fmt::format("{}: {} implausible, {} missing, {} notes\n", shown(imported.topology.name()), problems,
                      findings.size() - static_cast<std::size_t>(problems), imported.notes.size());
  if (output.json()) {
    output.write_json({{"name", imported.topology.name()}, {"implausible", problems}, {"findings", list}});
  } else {
    output.write_text(text);
  }
  return problems == 0 ? kOk : kNotMet;
}

int topology(const TopologyFlags& flags) {
  if (flags.action == "convert") return convert(flags);
  if (flags.action == "check") return check_file(flags);
  if (flags.action == "detect") return detect(flags);
  return show(flags);
}

}  // namespace

void add_topology(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("topology", "Show, convert or check a topology of any kind, or detect this machine's");
  auto flags = std::make_shared<TopologyFlags>();
  command->add_option("action", flags->action, "What to do: show, convert, check or detect")
      ->required()
      ->check(CLI::IsMember({"show", "convert", "check", "detect"}));
  command->add_option("topology", flags->file,
                      "A topology file of any kind, or a machine of the catalog; none with detect");
  add_import_options(*command, flags->import);
  command->add_option("--format", flags->format, "With convert: yaml (the default), dot, graphml or simgrid")
      ->transform(CLI::IsMember({"yaml", "dot", "graphml", "simgrid"}));
  command->add_option("--svg", flags->svg, "With show: also draw the machine to this file");
  add_common_options(*command, flags->common);
  command->callback([flags, &action] {
    if (flags->file.empty() && flags->action != "detect") throw CLI::RequiredError("topology");
    action = [flags] { return topology(*flags); };
  });
}

}  // namespace tandem
