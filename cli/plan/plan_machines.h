// What a plan asks, and the machines that it leaves open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/base/common_options.h"
#include "scenarios/plan/plan_space.h"
#include "topologies/topology.h"

namespace tandem {

// What is asked. Empty or 0: as the file says.
struct PlanQuestion {
  std::string file;
  std::vector<std::string> settings{};  // --set
  std::vector<std::string> topologies{};
  std::string devices{}, precision{}, space{};
  int batch = 0;
  std::int64_t tokens = 0;
  std::vector<std::string> strategies{};
  bool usual_space = false;
};

// Throws InputError about an option.
[[noreturn]] void refuse_option(const std::string& option, const std::string& message);

struct NamedTopology {
  std::string name;  // of the catalog, or an absolute path
  Topology topology;
};

bool is_of_catalog(const std::string& topology);
int gpus_of(const Topology& topology);  // of its first machine

// Reads what --topology names. Several are single machines to choose from. Throws InputError.
std::vector<NamedTopology> named_topologies(const PlanQuestion& question, bool needs_gpus, const CommonOptions& common);

// What the question makes of machines of one kind: how many, with so many devices each.
struct Machines {
  int per_machine = 0;         // GPUs; 0: the topology has none
  std::vector<int> workers{};  // machines to choose from
};

// `per_machine`: how many GPUs one has. Throws InputError where --devices are no whole machines.
Machines machines_for(const PlanQuestion& question, int per_machine);

// Returns what there is to choose from: nothing, unless there are several.
std::vector<MachineChoice> machine_choices(const PlanQuestion& question, const std::vector<NamedTopology>& named);

// Returns how many machines of one kind a choice needs at most.
int most_workers(const PlanQuestion& question, const std::vector<NamedTopology>& named);

}  // namespace tandem
