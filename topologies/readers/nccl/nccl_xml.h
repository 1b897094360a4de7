// Topology files of NCCL and RCCL: what NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads. They describe one machine
// (or one NVLink domain of several). Rates are computed as NCCL itself does (src/graph/xml.cc, topo.cc, topo.h
// of 2.30.7). A GPU's PCI id or architecture tells its model, whose figures come from the catalog.
//
// Clouds give files that hold only the PCIe layout; NCCL detects the rest where it runs. Here the rest comes from
// another machine: ImportOptions::complete_with, one that the file's name or its comments name, or the catalog's
// machine of the same GPU. Everything from there is assumed, and noted.
//
// Differences from NCCL: a GPU without a rank is kept; GPUs are ordered by host, then dev. The extra 6/5 that
// NCCL charges GPU-to-GPU traffic through an Intel CPU belongs to paths, not links, and is left out.
#pragma once

#include <string>
#include <string_view>

#include "topologies/readers/import.h"
#include "topologies/topology.h"

namespace tandem {

// Throws InputError with every problem found, at its line and column.
Topology parse_nccl_xml(std::string_view text, const std::string& file);
ImportedTopology import_nccl_xml(std::string_view text, const std::string& file, const ImportOptions& options);

}  // namespace tandem
