// Orders the ops of Chakra's ranks, which say only what they wait for. A trace is replayed in an order, on streams
// whose ops follow each other; this one lets no op wait for another without need.
#pragma once

#include <vector>

#include "scenarios/import/traces/trace.h"

namespace tandem {

// Plays all ranks together, with rough times, and puts the ops of each into the order in which they start:
// - an op starts when all that it waits for has ended and its resource is free: the multiprocessors, the memory or the
//   host, each of which executes one op at a time, that with the smallest id first;
// - a send starts regardless of its receive, which is therefore issued beforehand and waits for nothing. What comes
//   after a receive waits for its message and for what the receive itself waits for (Kind::join). Messages are matched
//   by ranks, tag and size;
// - sends to one rank, receives from one rank and collectives of one group have a stream each.
//
// Where a rank has no trace, sends and receives are work of this rank alone. Ranks that wait for each other in a circle
// keep their order, and RankTrace::deadlock names the circle. Throws InputError for a message that one side lacks.
void order_by_dependencies(std::vector<RankTrace>& traces);

}  // namespace tandem
