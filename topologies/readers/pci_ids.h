// GPUs and NICs by their PCI ids, for descriptions that give nothing else.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

struct PciGpu {
  unsigned vendor = 0, device = 0;
  std::string_view product;
  std::string_view architecture;  // "sm_80", "gfx942"
  std::string_view machine;       // of the catalog, with this GPU; empty: none has it
};

struct PciNic {
  unsigned vendor = 0, device = 0;
  std::string_view product;
  double bytes_per_s = 0;      // the fastest port of the product; 0: it varies
  std::string_view transport;  // as in LinkModel; empty: the card can have several
};

// All return null for an unknown id.
const PciGpu* find_pci_gpu(unsigned vendor, unsigned device);
const PciNic* find_pci_nic(unsigned vendor, unsigned device);

// Finds a GPU by its product name, as nvidia-smi, hwloc and people write it: "NVIDIA H100 80GB HBM3", "h100". Returns
// null when it fits none, or several of different architectures.
const PciGpu* find_gpu_named(std::string_view name);

// Returns whether display devices of this vendor compute: NVIDIA, AMD, Intel.
bool makes_gpus(unsigned vendor);

// Returns the machine of the catalog that a text mentions, by one of its names or a cloud's name for it
// ("p4d.24xlarge", "ndv4"); empty if there is none.
std::string machine_named_in(std::string_view text);

}  // namespace tandem
