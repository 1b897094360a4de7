// A transport of tasks that were started one by one: each has a TCP connection to every other one. It needs no MPI.
//
// Sums are added in the order of the ranks, each part of a tensor by one rank for all, so that all get the same values.
#pragma once

#include "engine/launched_job.h"
#include "engine/mpi/transport/tcp_socket.h"
#include "engine/mpi/transport/transport.h"

namespace tandem::mpi {

// Waits for all tasks: see meet_tasks(). The transport lives as long as the program.
Transport& open_tcp_transport(const TaskList& tasks, double timeout_s, Socket listener = {});

}  // namespace tandem::mpi
