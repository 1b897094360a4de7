// Small topologies and helpers for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topologies/routing.h"
#include "topologies/topology.h"

namespace tandem {

inline std::shared_ptr<const LinkModel> test_link(LinkKind kind, double bandwidth, double latency_s) {
  auto model = std::make_shared<LinkModel>();
  model->kind = kind;
  model->bandwidth_bytes_per_s.value = bandwidth;
  model->latency_s.value = latency_s;
  return model;
}

inline NodeIndex add_test_node(Topology& topology, const std::string& name, NodeKind kind, int worker = 0) {
  Node node;
  node.name = name;
  node.kind = kind;
  node.worker = worker;
  return topology.add_node(std::move(node));
}

inline NodeIndex node_named(const Topology& topology, const std::string& name) {
  const auto index = topology.find(name);
  EXPECT_TRUE(index) << "no node " << name;
  return index.value_or(0);
}

// The names along a route, the start first.
inline std::vector<std::string> names_along(const Topology& topology, const Route& route) {
  std::vector<std::string> names;
  for (const Edge& hop : route.hops) {
    const Link& link = topology.link(hop.link);
    if (names.empty()) names.push_back(topology.node(hop.forward ? link.from : link.to).name);
    names.push_back(topology.node(hop.forward ? link.to : link.from).name);
  }
  return names;
}

// The same nodes and links, added one by one.
inline Topology one_by_one(const Topology& topology) {
  Topology made(topology.name());
  for (NodeIndex index = 0; index < topology.node_count(); ++index) made.add_node(topology.node(index));
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    made.add_link(link.from, link.to, link.model, link.direction);
  }
  return made;
}

inline std::vector<std::string> way(const Topology& topology, const std::string& from, const std::string& to,
                                    std::uint64_t flow = 0) {
  Router router(topology);
  return names_along(topology, *router.route(node_named(topology, from), node_named(topology, to), flow));
}

}  // namespace tandem
