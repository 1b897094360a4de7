// Ranks of a launch that are connected by sockets of their own, so that the job can go on without one that is lost: MPI
// cannot (Open MPI 4 has no MPIX_Comm_shrink). MPI only exchanges the addresses, and has ended before the first run.
#pragma once

#include <string>

#include "engine/launched_job.h"
#include "engine/mpi/transport/transport.h"

namespace tandem::mpi {

// Whether the launcher leaves the others alone when a rank ends (mpirun --enable-recovery), as its environment says, or
// the user does (TANDEM_RANK_SOCKETS=1). Only then do sockets have a use.
bool launcher_keeps_others();
// Why the ranks of this launch are lost together.
std::string why_launch_loses_no_rank();

// Throws UnavailableError where MPI cannot be used, RunError where ranks do not meet.
Transport& open_launched_sockets(Rank rank);

[[noreturn]] void refuse_lone_rank(Rank rank, const std::string& library);  // with an UnavailableError

}  // namespace tandem::mpi
