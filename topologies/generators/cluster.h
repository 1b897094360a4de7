// Generates clusters of equal machines behind a fabric, and plain hosts.
//
// Machines whose nvlink_domain is more than 1 share one NVSwitch for each domain, "fabric.nvswitch0", which has no
// worker.
//
// The nodes of worker 3 are named "w3.gpu0", "w3.cpu1", ...; switches are named "fabric.switch0", "fabric.leaf0",
// "fabric.rail0", "fabric.spine0", "fabric.core0", "fabric.router0". A cable between a NIC and its switch has the
// bandwidth and latency of the NIC's port.
#pragma once

#include <string>
#include <string_view>

#include "topologies/generators/fabric.h"
#include "topologies/topology.h"

namespace tandem {

// Makes a cluster of `workers` copies of a machine; one worker gets no fabric. Throws tandem::Error when `node` is not
// one machine, or when there are several workers and `node` has no NIC with a known port.
Topology make_cluster(const Topology& node, int workers, const Fabric& fabric = {}, std::string name = "");
Topology make_cluster(std::string_view catalog_name, int workers, const Fabric& fabric = {}, std::string name = "");

// Makes one worker that is a CPU with `cores` cores, "w0.cpu0". All figures are assumed; `tandem calibrate` measures
// them.
Topology make_host(int cores);

}  // namespace tandem
