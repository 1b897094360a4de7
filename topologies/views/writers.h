// Writes topologies in the formats of other programs. All throw tandem::Error when the stream fails.
#pragma once

#include <ostream>

#include "topologies/topology.h"

namespace tandem {

// For Graphviz: one edge for each link, with `kind`, `bw` and `lat`; read_topology reads it back.
void write_dot(const Topology& topology, std::ostream& stream);

// The same as GraphML, for yEd, Gephi and NetworkX.
void write_graphml(const Topology& topology, std::ostream& stream);

// A SimGrid platform, DTD 4.1: a host for each device, a router for each switch, links as they are, routes between
// neighbours for a zone with shortest paths (Floyd for small ones, Dijkstra with cache for others).
void write_simgrid_xml(const Topology& topology, std::ostream& stream);

}  // namespace tandem
