// How tasks that were started one by one meet: each listens at its own address and connects to those before it, in any
// order of their starts. The one that connects introduces itself; the other accepts or refuses it, with a reason.
//
//   connects:  "tandem-task/1" NEWLINE, own rank NEWLINE, expected rank NEWLINE, tasks and addresses NEWLINE
//   accepts:   "ok" NEWLINE; or "refused: " reason NEWLINE, and the connection ends
//
// Threads: one.
#pragma once

#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "engine/launched_job.h"
#include "engine/mpi/transport/tcp_socket.h"

namespace tandem::mpi {

// The connections of this task to the others, by rank; its own is the socket at which it goes on listening.
using TaskSockets = std::vector<Socket>;

// Waits until all tasks have met, and says on stderr after two seconds for which ones. Throws UnavailableError as
// listen_as() does, and RunError where a task has another cluster, where another process is this task already, and
// after `timeout_s`, with the tasks that are missing. `listener` listens at this task's address already. Exits with
// kInterrupted after a signal (signal_to_job).
TaskSockets meet_tasks(const TaskList& tasks, double timeout_s, Socket listener = {});

std::string place_of_task(const TaskList& tasks, int rank);  // "worker 0 at node7:2222"

}  // namespace tandem::mpi
