// The least time that replicas need to exchange gradients and parameters, by the links that these cross.
#pragma once

#include <vector>

#include "scenarios/job/job.h"
#include "topologies/topology.h"

namespace tandem {

// The largest rates, in bytes/s in one direction. 0: not known, as where a topology has no such links.
struct LinkRates {
  bool are_alike = true;  // all machines have equal devices, ports and links

  double of_gpu = 0;      // over its links to other GPUs and to NVSwitches
  double of_machine = 0;  // over its network ports
  double of_host = 0;     // of a GPU over its links to the host, by which it reaches others where it has no such links

  explicit LinkRates(const Topology& topology);
};

// What the first device of a pipeline exchanges with those that have the same parameters. Seconds in which nothing else
// of the kind is exchanged.
struct ReplicaExchange {
  double summed_s = 0;               // gradients of its stages, in the last pass of each
  std::vector<double> gathered_s{};  // parameters of each of its stages, by chunk
  bool is_summed_later = false;      // after all passes, and not beside the last ones
  bool is_gathered_first = false;    // as the step begins, and not at its end
};

// `first` is the first layer of each stage, followed by the number of layers. Counts no experts, and no more of a layer
// than a device has at least. A domain of NVLink needs all of its devices in equal groups, else nothing is known.
ReplicaExchange replica_exchange(const ParallelOptions& mesh, const LayersSettings& layers,
                                 const std::vector<std::size_t>& first, const LinkRates& rates);

}  // namespace tandem
