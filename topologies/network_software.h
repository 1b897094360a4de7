// What the software of networks adds to messages, where a machine's file does not say it.
#pragma once

#include <string>

#include "topologies/topology.h"

namespace tandem {

// Sets the transport of a network's link. If it is another one than before, or if a latency of its software is not
// known, hop_latency_s and advertised_latency_s become those that are usual for it, each with its range and its source.
void set_transport(const std::string& transport, LinkModel& model);

}  // namespace tandem
