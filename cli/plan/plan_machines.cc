#include "cli/plan/plan_machines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "cli/base/load.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

constexpr int kMostDevicesOfAPlan = 1 << 20;

struct DeviceRange {
  int least = 0, most = 0;
};

std::optional<int> device_count(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kMostDevicesOfAPlan)
    return std::nullopt;
  return count;
}

DeviceRange devices_of(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto least = device_count(std::string_view(text).substr(0, dots));
  const auto most = dots == std::string::npos ? least : device_count(std::string_view(text).substr(dots + 2));
  if (least && most && *least <= *most) return {*least, *most};
  if (least && most)
    refuse_option("--devices " + text, fmt::format("a range begins with its smaller number: {}..{}", *most, *least));
  refuse_option("--devices " + text,
                fmt::format("expected a number of devices from 1 to {}, such as 512, or a range, such as 64..512",
                            kMostDevicesOfAPlan));
}

}  // namespace

void refuse_option(const std::string& option, const std::string& message) {
  throw InputError({{.file = option, .path = "", .message = message}});
}

bool is_of_catalog(const std::string& topology) {
  const std::vector<std::string> names = catalog_names();
  return std::find(names.begin(), names.end(), topology) != names.end();
}

int gpus_of(const Topology& topology) {
  return static_cast<int>(topology.nodes_of(0, NodeKind::gpu).size());
}

Machines machines_for(const PlanQuestion& question, int per_machine) {
  Machines machines{.per_machine = per_machine};
  if (question.devices.empty()) return machines;
  const DeviceRange range = devices_of(question.devices);
  const int each = std::max(1, per_machine);
  const auto check = [&](int devices) {
    const std::string option = "--devices " + question.devices;
    if (range.least < range.most && devices < each)
      refuse_option(option, fmt::format("a range is of whole machines of {}; or give one number of devices", each));
    if (devices <= each || devices % each == 0) return;
    refuse_option(option, fmt::format("{} devices are no whole machines of {}; {} or {} are", devices, each,
                                      devices / each * each, (devices / each + 1) * each));
  };
  for (int devices = range.least; devices <= range.most; devices *= 2) {
    check(devices);
    machines.workers.push_back(std::max(1, devices / each));
    if (devices > kMostDevicesOfAPlan / 2) break;
  }
  machines.per_machine = std::min(each, range.most);
  return machines;
}

std::vector<NamedTopology> named_topologies(const PlanQuestion& question, bool needs_gpus,
                                            const CommonOptions& common) {
  std::vector<NamedTopology> named;
  const bool has_several = question.topologies.size() > 1;
  for (const std::string& name : question.topologies) {
    ImportedTopology imported = topology_named(name);
    print_notes(imported.notes, common);
    const std::string option = "--topology " + name;
    if ((needs_gpus || has_several) && gpus_of(imported.topology) == 0) refuse_option(option, "has no GPUs");
    if (has_several && name.find_first_of("'\"\\") != std::string::npos)
      refuse_option(option, "of several topologies, none has a quotation mark or a backslash in its name");
    if (has_several && imported.topology.worker_count() > 1)
      refuse_option(option, "has several machines; to choose from several topologies, each is one machine");
    named.push_back({.name = is_of_catalog(name) ? name : std::filesystem::absolute(name).string(),
                     .topology = std::move(imported.topology)});
  }
  if (!has_several) return named;
  const std::string option = fmt::format("--topology {}", fmt::join(question.topologies, ","));
  if (question.devices.empty()) refuse_option(option, "to choose from several machines needs --devices");
  if (!question.space.empty())
    refuse_option(option, "several machines are for the usual space; name them in yours, as topology.cluster.node");
  return named;
}

std::vector<MachineChoice> machine_choices(const PlanQuestion& question, const std::vector<NamedTopology>& named) {
  std::vector<MachineChoice> choices;
  if (named.size() < 2) return choices;
  for (const NamedTopology& one : named) {
    const Machines machines = machines_for(question, gpus_of(one.topology));
    choices.push_back({.node = one.name,
                       .per_worker = machines.per_machine,
                       .workers = machines.workers,
                       .joined = one.topology.facts().nvlink_domain});
  }
  return choices;
}

int most_workers(const PlanQuestion& question, const std::vector<NamedTopology>& named) {
  int most = 0;
  for (const NamedTopology& one : named)
    most = std::max(most, machines_for(question, gpus_of(one.topology)).workers.back());
  return most;
}

}  // namespace tandem
