// Turns the links of a SimGrid platform and the routes that list them into a graph. A platform does not say what is
// between two links; the routes do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topologies/readers/described_graph.h"

namespace tandem {

struct PlatformLink {
  std::string id{}, kind{};
  double bytes_per_s = 0, latency_s = 0;
  Direction direction = Direction::duplex;
  bool is_fatpipe = false;  // limits each flow by itself
  FilePlace place{};
};

struct PlatformHop {
  std::size_t link = 0;
  bool is_down = false;  // the second direction of a duplex link
};

struct PlatformRoute {
  std::size_t from = 0, to = 0;  // nodes
  std::vector<PlatformHop> hops{};
  bool is_symmetrical = true;
  bool is_whole = true;    // false: one edge of routes that SimGrid finds itself
  std::size_t number = 0;  // in the file
};

struct Platform {
  DescribedGraph graph{};  // without what the routes tell
  std::vector<PlatformLink> links{};
  std::vector<PlatformRoute> routes{};
  bool has_kinds = false;  // nodes and links tell their kinds, as in files that Tandem wrote
};

// Returns the graph with the links that routes list, and with a switch where two of them meet. A link that does not
// have the same two ends in all its routes, such as a bus or a backbone, is a medium: one link between two switches,
// which everything next to it in some route enters at one switch and leaves at the other. With `all_media`, every link
// is a medium.
DescribedGraph join_routes(const Platform& platform, bool all_media);

// Describes the first route whose latency or bandwidth differs in `topology`.
struct RouteDifference {
  std::size_t number = 0;  // of the route
  std::string text{};
};
std::optional<RouteDifference> find_difference(const Platform& platform, const Topology& topology);

}  // namespace tandem
