// Machines as hwloc sees them: its XML (`lstopo node.xml`), and this machine itself.
#pragma once

#include <string>
#include <string_view>

#include "topologies/readers/import.h"

namespace tandem {

// Both throw UnavailableError where Tandem was built without hwloc.
ImportedTopology import_hwloc(std::string_view text, const std::string& file, const ImportOptions& options);

// Describes this machine: processors, PCIe, GPUs and NICs from hwloc, rates of ports from sysfs, NVLinks from NVML
// where the driver has it.
ImportedTopology detect_machine(const ImportOptions& options);

}  // namespace tandem
