// What decides how NCCL runs on a group of GPUs, as plain numbers: survey.h reads them off a Topology.
//
// A *domain* is what NCCL calls a node: the GPUs that reach each other without a network. It is a machine, or all the
// machines that one NVLink fabric joins. Rates are GB/s = 1e9 bytes/s in one direction, times microseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::sim::nccl {

// How the GPUs of a domain reach each other. staged: through memory of the host, because no GPU can read another's.
enum class Intra : std::uint8_t { nvswitch, nvlink_mesh, pcie, staged };

struct Machine {
  int capability = 80;      // compute capability, 10 * major + minor; 0: a GPU of AMD, driven by RCCL
  double clock_ghz = 1.41;  // boost; 0: not known
  bool has_amd_host = false;

  int domains = 1;
  int gpus = 1;        // of the largest domain
  int total_gpus = 1;  // of all

  Intra intra = Intra::nvswitch;
  // nvswitch: all links of a GPU together; pcie and staged: the slowest path between two GPUs. gpu_gbs is by NCCL's
  // constants, gpu_wire_gbs as bytes move on the wire.
  double gpu_gbs = 0;
  double gpu_wire_gbs = 0;
  // nvlink_mesh: the rate between every two GPUs of a machine by NCCL's constants, row by row. The GPUs of the group
  // come first; the others may be crossed.
  std::vector<double> mesh_gbs{};
  double mesh_wire_factor = 1;  // wire / NCCL's constant

  int nics = 0;        // of a domain; 0 where there is one domain only
  double nic_gbs = 0;  // of each
  double hop_us = 0;   // what the network's software adds to each message
  // What links add to a step inside the domain, and between two of them, beyond the usual links to which the constants
  // were fitted; negative where links are faster. NCCL does not know it when it chooses.
  double link_us = 0;
  double wire_us = 0;
  double advertised_us = 0;   // the latency that its plug-in tells NCCL
  bool nics_are_near = true;  // a NIC and a GPU share a PCIe switch
  bool nics_use_c2c = false;  // or the NIC is at a processor to which a GPU has a coherent link (NVLink-C2C)
  bool lacks_sharp = false;   // the network's switches cannot reduce: it is not InfiniBand
  bool lacks_ll128 = false;   // the network does not keep the order of bytes that LL128 relies on

  int mesh_size() const;
  double mesh(int from, int to) const { return mesh_gbs[static_cast<std::size_t>(from * mesh_size() + to)]; }
};

}  // namespace tandem::sim::nccl
