// The records of all ranks as those of one run.
#pragma once

#include <vector>

#include "engine/mpi/clocks.h"
#include "engine/mpi/transport.h"
#include "engine/timeline.h"

namespace tandem::mpi {

// All ranks call it, with their own records and, on rank 0, everybody's clocks. Every rank gets all records, sorted, by
// rank 0's clock; the calls of collectives have small numbers in the order in which they began. `clocks` is filled in
// on the other ranks.
std::vector<Record> gather_records(Transport& transport, const std::vector<Record>& mine,
                                   std::vector<AlignedClock>& clocks);

}  // namespace tandem::mpi
