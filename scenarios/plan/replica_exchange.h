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
  double of_memory = 0;   // of a GPU, where its kernels take what its figures say

  explicit LinkRates(const Topology& topology);
};

// What the first device of a pipeline exchanges with those that have the same parameters, and what it does with the
// sums. Seconds in which nothing else of the kind is done.
struct ReplicaExchange {
  double summed_s = 0;               // gradients of its stages, in the last pass of each
  double updated_s = 0;              // of its parameters, after all passes
  std::vector<double> gathered_s{};  // parameters of each of its stages, by chunk
  bool is_summed_later = false;      // after all passes, and not beside the last ones
  bool is_gathered_first = false;    // as the step begins, and not at its end
};

// Returns the seconds in which one of `parts` devices updates `parameters` that they divide; 0 where nothing is known.
double least_update_s(const LayersSettings& layers, double parameters, double parts, const LinkRates& rates);

// `first` is the first layer of each stage, followed by the number of layers. Exchanges no experts, and counts no more
// of a layer than a device has at least. A domain of NVLink needs all of its devices in equal groups, else nothing is
// known.
ReplicaExchange replica_exchange(const ParallelOptions& mesh, const LayersSettings& layers,
                                 const std::vector<std::size_t>& first, const LinkRates& rates);

}  // namespace tandem
