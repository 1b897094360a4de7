// Fabrics as ibnetdiscover and Slurm describe them, and clusters of machines behind them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/strict_yaml.h"
#include "topologies/readers/import.h"

namespace tandem {

struct FabricDescription {
  struct Port {
    std::size_t host = 0;
    std::string device{};    // "mlx5_0"; empty: all NICs of the host
    std::size_t at = 0;      // the switch
    double bytes_per_s = 0;  // 0: not stated
    std::string source{};
  };
  struct Cable {
    std::size_t from = 0, to = 0;  // switches
    double bytes_per_s = 0;        // 0: not stated: as wide as all ports below `from`
    std::string source{};
  };
  std::vector<std::string> hosts{}, switches{};
  std::vector<Port> ports{};
  std::vector<Cable> cables{};
  std::vector<std::size_t> blocks{};  // by host; hosts of one block share an NVLink domain. Empty: not stated
  std::vector<std::string> notes{};   // keys that have no effect
};

bool is_ibnetdiscover(std::string_view text);
FabricDescription parse_ibnetdiscover(std::string_view text, const std::string& file);

bool is_slurm_conf(std::string_view text);
FabricDescription parse_slurm_conf(std::string_view text, const std::string& file);

// Slurm's newer form, topology.yaml.
bool is_slurm_yaml(std::string_view text);
FabricDescription parse_slurm_yaml(std::string_view text, const std::string& file);

// Reads a file of any of these kinds. Throws InputError for others.
FabricDescription read_fabric_description(const std::string& file);

// Expands "node[01-03,7],gpu5", in its order. Returns nothing when it is malformed or has more than a million names.
std::optional<std::vector<std::string>> hosts_of_list(std::string_view list);

// Makes a cluster with one machine for each host: all hosts in natural order, or those of `hosts` in their order.
// Machines of NVLink domains (Topology::nvlink_domain) share one NVSwitch for each block or, where the fabric states
// no blocks, for each so many hosts in their order.
// Without a machine, the hosts have their NICs and nothing else. Throws InputError naming `file`.
Topology compose_cluster(const Topology* machine, const FabricDescription& fabric,
                         const std::vector<std::string>& hosts, const std::string& name, const std::string& file,
                         std::vector<std::string>& notes);

// Does the same for a file by itself, with the machine of options.complete_with.
ImportedTopology import_fabric(const FabricDescription& fabric, const std::string& file, const ImportOptions& options);

}  // namespace tandem
