// The algorithms by which MPI libraries execute collectives between hosts, chosen by size as MPICH chooses them
// (pmodels/mpich src/mpi/coll, its MPIR_CVAR_* switch points; Thakur, Rabenseifner and Gropp, "Optimization of
// Collective Communication Operations in MPICH", 2005):
//
//   collective      up to                        algorithm                                    beyond
//   all_reduce      2 KiB                        recursive doubling                           Rabenseifner
//   reduce          2 KiB                        binomial tree                                Rabenseifner
//   broadcast       12 KiB, or fewer than 8      binomial tree                                scatter and all-gather
//   all_gather      512 KiB, a power of two      recursive doubling                           ring
//   all_gather      80 KiB, any other number     Bruck                                        ring
//   reduce_scatter  512 KiB                      recursive halving                            pairwise exchange
//   all_to_all      256 B a pair, 8 or more      Bruck                                        pairwise exchange
#pragma once

#include <memory>

#include "engine/sim/collectives/collective_algorithm.h"

namespace tandem::sim {

// Chooses the algorithm for devices that each have a host of their own.
std::unique_ptr<CollectiveAlgorithm> choose_mpi_algorithm(const CollectiveShape& shape);

// For all_reduce and all_gather: in each of log2(n) steps, every two devices whose numbers differ in one bit exchange
// what they have. Where n is no power of two, the devices beyond the last power of two first hand their data to others,
// and get the result at the end.
class RecursiveDoubling : public CollectiveAlgorithm {
 public:
  std::string_view name() const override { return "recursive doubling"; }
  Schedule plan(const CollectiveShape& shape) const override;
};

// Recursive halving, in which every exchange reduces half of what is left; then recursive doubling (all_reduce), a
// gathering tree (reduce), or nothing (reduce_scatter).
class RecursiveHalving : public CollectiveAlgorithm {
 public:
  explicit RecursiveHalving(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  Schedule plan(const CollectiveShape& shape) const override;

 private:
  std::string_view name_;
};

// In every step, the number of devices that have the data doubles (broadcast), or the number of devices that still hold
// a part halves (reduce).
class BinomialTree : public CollectiveAlgorithm {
 public:
  std::string_view name() const override { return "binomial tree"; }
  Schedule plan(const CollectiveShape& shape) const override;
};

// Scatters parts down a binomial tree, which all devices then gather: over a ring if the parts are long.
class ScatterAllGather : public CollectiveAlgorithm {
 public:
  std::string_view name() const override { return "scatter and all-gather"; }
  Schedule plan(const CollectiveShape& shape) const override;
};

// Bruck's algorithm: ceil(log2(n)) steps for any n, which send to the device 1, 2, 4, ... places away.
class BruckAlgorithm : public CollectiveAlgorithm {
 public:
  std::string_view name() const override { return "Bruck"; }
  Schedule plan(const CollectiveShape& shape) const override;
};

// For reduce_scatter: every device sends each other device its part directly, beginning with the next device.
class PairwiseReduceScatter : public CollectiveAlgorithm {
 public:
  std::string_view name() const override { return "pairwise exchange"; }
  Schedule plan(const CollectiveShape& shape) const override;
};

}  // namespace tandem::sim
