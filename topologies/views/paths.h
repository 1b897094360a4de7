// How the devices of a machine reach each other, in the words of `nvidia-smi topo -m` and NCCL.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

// The kind of a path is that of its worst link. Listed from the best to the worst.
enum class PathType : std::uint8_t {
  self,        // X
  nvlink,      // NV18, or XGMI: over NVLink or xGMI alone, with the number of links where it is known
  c2c,         // C2C: from a GPU to the processor in its package
  one_switch,  // PIX: at most one PCIe switch
  switches,    // PXB: several PCIe switches
  host,        // PHB: the processor that both are attached to
  system,      // SYS: several processors
  network,     // NET: several machines
  none         // DIS
};

struct Path {
  PathType type = PathType::none;
  int links = 0;                     // of NVLink; 0: unknown
  double bandwidth_bytes_per_s = 0;  // of the narrowest link
  double latency_s = 0;
};

// The first 256 GPUs and NICs of a worker, GPUs first, and the path of each pair, row by row.
struct PathMatrix {
  std::vector<NodeIndex> devices{};
  std::vector<Path> paths{};
  const Path& between(std::size_t from, std::size_t to) const { return paths[from * devices.size() + to]; }
};
PathMatrix paths_of(const Topology& topology, int worker);

// Names a path: "NV18", "PIX", "DIS". With `is_amd` an NVLink is named XGMI.
std::string path_text(const Path& path, bool is_amd);

// Returns the NICs that a GPU reaches best, by type, then bandwidth, as indices into the devices of the matrix.
std::vector<std::size_t> nearest_nics(const Topology& topology, const PathMatrix& matrix, std::size_t gpu);

// Returns the sum of the rates of a GPU's NVLinks or xGMI links; 0 where it has none.
double nvlink_rate_of(const Topology& topology, NodeIndex gpu);

// A ring of direct links over all GPUs of a worker, and the bandwidth of each of its links.
struct Ring {
  std::vector<NodeIndex> gpus{};
  double bandwidth_bytes_per_s = 0;
};
// Returns rings that share no bandwidth, as a search from the first GPU finds them; none where the GPUs are not joined
// by direct links, or are more than 64.
std::vector<Ring> nvlink_rings(const Topology& topology, int worker);

// The maximum flow from one half of the GPUs to the other: the least of all halves for up to 10 GPUs, that of the first
// half by number for more.
struct Bisection {
  double bandwidth_bytes_per_s = 0;
  bool is_least = false;  // of all halves
  std::vector<NodeIndex> half{};
};
Bisection bisection_of(const Topology& topology, const std::vector<NodeIndex>& gpus);

}  // namespace tandem
