// What the readers of foreign descriptions share: the options that they take in addition to the file, and the notes
// that they return in addition to the topology.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topologies/readers/pci_ids.h"
#include "topologies/topology.h"

namespace tandem {

struct ImportOptions {
  // The machine from which a partial description is completed: a name of the catalog, a file, or "none", so that
  // nothing is taken from another machine. Empty: the catalog's machine of the same GPU, if the description tells the
  // GPU.
  std::string complete_with{};
  // The product of the GPUs where a description does not tell it: "h100", "A100-SXM4-40GB".
  std::string gpu{};
};

struct ImportedTopology {
  Topology topology;
  std::vector<std::string> notes{};  // what was assumed and what was left out, for people
};

// Returns a note if there are options, for a description that lacks nothing.
std::vector<std::string> notes_of_unused(const ImportOptions& options);

// The value of ImportOptions::complete_with that means no machine.
inline constexpr const char* kNoMachine = "none";

// Returns the machine that ImportOptions::complete_with names. Throws InputError when there is none.
Topology machine_to_complete_with(const std::string& name);

// The machine from which a partial description is completed.
struct Completion {
  Topology machine;
  std::string name{};    // as the options, the texts or the catalog name it
  std::string reason{};  // why this one: "which the file's name or its comments name"; empty: the options name it
};
// What a description tells about the machine that it is of.
struct MachineClues {
  std::vector<std::string> texts{};  // which may name a machine of the catalog, the best first: a file's name, comments
  const PciGpu* product = nullptr;   // of the description's GPUs; null: it does not tell
  std::function<bool(const Topology&)> fits{};  // whether the description can be of a machine
};
// Returns the machine that ImportOptions::complete_with names, else one that the texts name and that fits, else the
// catalog's machine with the description's GPU or that of ImportOptions::gpu. Throws InputError when an option names
// nothing.
std::optional<Completion> completion_of(const ImportOptions& options, const MachineClues& clues);

// Returns the first link of a kind in a machine, preferably one at a GPU; null: none.
std::shared_ptr<const LinkModel> first_link(const Topology& machine, LinkKind kind);

// What a description without rates takes from elsewhere: from a machine, or from what is known about a GPU.
struct Borrowed {
  std::string name{};  // of the machine or product, for notes; empty: nothing is known
  std::optional<Topology> machine{};
  std::shared_ptr<const DeviceModel> gpu{};
  std::shared_ptr<const DeviceModel> cpu{};
  std::shared_ptr<const LinkModel> pcie{}, numa{}, port{};  // port: of a NIC; null where the machine has none
  double nvlink_bytes_per_s = 0;                            // of one link
  int nvlinks = 0;                                          // of one GPU at most; 0: unknown
  std::vector<std::string> remarks{};                       // where options and description differ, for notes
};
// Borrows from the machine of completion_of(), which the file's name may tell, else by `product`, which is the
// description's own or null. `vendor` figures of a product stay; what comes from a machine is assumed. Throws
// InputError when an option names nothing.
Borrowed borrow(const ImportOptions& options, const std::string& file, const PciGpu* product);

// Returns the product of ImportOptions::gpu, or null if none is named. Throws InputError for an unknown one.
const PciGpu* stated_gpu(const ImportOptions& options);

// Returns whether the GPUs of `topology` can reach each other's memory: they can if NVLink or xGMI joins some of them,
// or if those of `other` can, from which it was completed.
bool p2p_as_in(const Topology& other, const Topology& topology);

// Returns how many machines like `topology` share an NVSwitch: as many as those of `other`, from which it was
// completed, if it is one machine whose GPUs are behind an NVSwitch.
int nvlink_domain_as_in(const Topology& other, const Topology& topology);

// Returns a remark that a description's GPUs are not those of the machine that completes it.
std::string remark_on_other_gpus(const DeviceModel& own, const std::string& machine, const DeviceModel& others);

// Returns the model of the fastest port of a card, with assumed figures.
LinkModel fastest_port_of(const PciNic& card);

// Returns a model like `model` whose figures are all assumed, "as in <name>".
DeviceModel assumed_as_in(const std::string& name, const DeviceModel& model);
LinkModel assumed_as_in(const std::string& name, const LinkModel& model);

}  // namespace tandem
