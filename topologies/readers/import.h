// What the readers of foreign descriptions share: what they are told beside the file, and what they tell beside the
// topology.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topologies/readers/pci_ids.h"
#include "topologies/topology.h"

namespace tandem {

struct ImportOptions {
  // A machine that has what a partial description lacks: a name of the catalog, a file, or "none", so that nothing is
  // taken from another machine. Empty: the catalog's machine of the same GPU, if the description tells the GPU.
  std::string complete_with{};
  // The product of the GPUs where a description does not tell it: "h100", "A100-SXM4-40GB".
  std::string gpu{};
};

struct ImportedTopology {
  Topology topology;
  std::vector<std::string> notes{};  // what was assumed and what was left out, for people
};

// The word of ImportOptions::complete_with for no machine.
inline constexpr const char* kNoMachine = "none";

// What a description without rates takes from elsewhere: from a machine, or by what is known of a GPU.
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
// By ImportOptions, else by a machine that the file's name names, else by `product`, which is the description's own or
// null. `vendor` figures of a product stay; what comes from a machine is assumed. Throws InputError when an option
// names nothing.
Borrowed borrow(const ImportOptions& options, const std::string& file, const PciGpu* product);

// The machine that ImportOptions::complete_with names. Throws InputError when there is none.
Topology machine_to_complete_with(const std::string& name);
// The product of ImportOptions::gpu; null: none is named. Throws InputError for an unknown one.
const PciGpu* stated_gpu(const ImportOptions& options);

// Whether the GPUs of a machine reach each other's memory: where NVLink or xGMI joins some of them, else as in `other`,
// which was borrowed from.
bool p2p_as_in(const Topology& other, const Topology& topology);

// Says that a description's GPUs are not those of the machine that completes it.
std::string remark_on_other_gpus(const DeviceModel& own, const std::string& machine, const DeviceModel& others);

// The fastest port of a card, assumed.
LinkModel fastest_port_of(const PciNic& card);

// Returns a model like `model` whose figures are all assumed, "as in <name>".
DeviceModel assumed_as_in(const std::string& name, const DeviceModel& model);
LinkModel assumed_as_in(const std::string& name, const LinkModel& model);

}  // namespace tandem
