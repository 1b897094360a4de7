// Gathers the records of all ranks into those of one run.
#pragma once

#include <vector>

#include "engine/mpi/clocks.h"
#include "engine/mpi/transport/transport.h"
#include "engine/timeline.h"

namespace tandem::mpi {

// Called by all ranks, with their own records and, on rank 0, the clocks of all. Returns the records of all ranks on
// every rank, without those of lost ones, sorted and in rank 0's time; calls of collectives are numbered from 0 in the
// order in which they began. Fills in `clocks` on the other ranks.
std::vector<Record> gather_records(Transport& transport, const std::vector<Record>& mine,
                                   std::vector<AlignedClock>& clocks);

}  // namespace tandem::mpi
