#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>

#include "topologies/views/paths.h"

namespace tandem {
namespace {

constexpr std::size_t kMostHalves = 10;  // with so many GPUs all halves are tried: 126

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, long,
                    boost::property<boost::edge_residual_capacity_t, long,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

// The algorithm wants a reverse edge without capacity for each edge.
void add_edge(FlowGraph& graph, std::size_t from, std::size_t to, long rate) {
  const auto forward = boost::add_edge(from, to, graph).first;
  const auto reverse = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, forward, rate);
  boost::put(boost::edge_capacity, graph, reverse, 0);
  boost::put(boost::edge_reverse, graph, forward, reverse);
  boost::put(boost::edge_reverse, graph, reverse, forward);
}

// Returns the flow from the GPUs of the half to the others, in whole MB/s, so that equal topologies give equal flows.
// The graph is built each time, because its edges point to their reverse edges, and a copy's would not.
double flow_between(const Topology& topology, const std::vector<NodeIndex>& gpus, const std::vector<bool>& half) {
  constexpr long kUnlimited = 1L << 50;
  const std::size_t source = topology.node_count();
  const std::size_t sink = source + 1;
  FlowGraph graph(sink + 1);
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    const long rate = std::lround(link.model->bandwidth_bytes_per_s.value / 1e6);
    add_edge(graph, link.from, link.to, rate);
    if (link.direction != Direction::one_way) add_edge(graph, link.to, link.from, rate);
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    add_edge(graph, half[i] ? source : gpus[i], half[i] ? gpus[i] : sink, kUnlimited);
  }
  return static_cast<double>(boost::push_relabel_max_flow(graph, source, sink)) * 1e6;
}

}  // namespace

Bisection bisection_of(const Topology& topology, const std::vector<NodeIndex>& gpus) {
  Bisection bisection;
  const std::size_t size = gpus.size() / 2;
  if (size == 0) return bisection;
  std::vector<bool> half(gpus.size(), false), best;
  std::fill_n(half.begin(), size, true);
  bisection.is_least = gpus.size() <= kMostHalves;
  do {                                                 // all halves, in order
    if (gpus.size() % 2 == 0 && !half.front()) break;  // the rest are complements of earlier ones
    const double rate = flow_between(topology, gpus, half);
    if (best.empty() || rate < bisection.bandwidth_bytes_per_s) {
      bisection.bandwidth_bytes_per_s = rate;
      best = half;
    }
  } while (bisection.is_least && std::prev_permutation(half.begin(), half.end()));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (best[i]) bisection.half.push_back(gpus[i]);
  }
  return bisection;
}

}  // namespace tandem
