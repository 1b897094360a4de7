// Routes of a cluster: those of Boost.Graph's search, which visits everything that is nearer than its end, beside those
// of the Router, which searches in the machines of both ends and the fabric between them.
#include <benchmark/benchmark.h>

#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/property_map/function_property_map.hpp>

#include "tests/benchmarks/exact_counters.h"
#include "topologies/arcs.h"
#include "topologies/generators/cluster.h"
#include "topologies/graph.h"
#include "topologies/routing.h"

namespace tandem {
namespace {

Topology rail_cluster(int machines) {
  return make_cluster("hgx-h100", machines, {.kind = FabricKind::rail});
}

struct Found {};  // thrown by the visitor where its search may end

class UntilFound : public boost::default_dijkstra_visitor {
 public:
  UntilFound(NodeIndex end, std::int64_t& visited) : end_(end), visited_(&visited) {}
  void examine_vertex(NodeIndex node, const Graph& /*graph*/) {
    ++*visited_;
    if (node == end_) throw Found();
  }

 private:
  NodeIndex end_;
  std::int64_t* visited_;
};

// From the first GPU of each machine to the fourth of the next one, whose NIC is on another rail.
std::pair<NodeIndex, NodeIndex> ends_of(const Topology& topology, int machine) {
  const int next = (machine + 1) % topology.worker_count();
  return {topology.nodes_of(machine, NodeKind::gpu)[0], topology.nodes_of(next, NodeKind::gpu)[3]};
}

void route_by_boost(benchmark::State& state) {
  const Topology topology = rail_cluster(static_cast<int>(state.range(0)));
  const Graph graph = graph_of(topology);
  const auto cost = boost::make_function_property_map<Graph::edge_descriptor>(
      [&](const Graph::edge_descriptor& edge) { return cost_of(topology.link_model(graph[edge].link)); });
  std::vector<Graph::vertex_descriptor> before(topology.node_count());
  std::vector<Picoseconds> distance(topology.node_count());
  const auto index = boost::get(boost::vertex_index, graph);
  std::int64_t visited = 0;
  int machine = 0;
  for (auto _ : state) {
    visited = 0;
    const auto [from, to] = ends_of(topology, machine);
    machine = (machine + 1) % topology.worker_count();
    try {
      boost::dijkstra_shortest_paths(graph, from,
                                     boost::weight_map(cost)
                                         .predecessor_map(boost::make_iterator_property_map(before.begin(), index))
                                         .distance_map(boost::make_iterator_property_map(distance.begin(), index))
                                         .visitor(UntilFound(to, visited)));
    } catch (const Found&) {
    }
  }
  set_exact(state, "nodes", static_cast<double>(topology.node_count()));
  state.counters["visited"] = static_cast<double>(visited);
}

void route_by_router(benchmark::State& state) {
  const Topology topology = rail_cluster(static_cast<int>(state.range(0)));
  Router router(topology);
  std::uint64_t visited = 0;
  int machine = 0;
  for (auto _ : state) {
    const std::uint64_t before = router.visited_count();
    const auto [from, to] = ends_of(topology, machine);
    machine = (machine + 1) % topology.worker_count();
    Route route{.bandwidth_bytes_per_s = std::numeric_limits<double>::infinity()};
    router.append(from, to, route);
    benchmark::DoNotOptimize(route);
    visited = router.visited_count() - before;
  }
  set_exact(state, "nodes", static_cast<double>(topology.node_count()));
  state.counters["visited"] = static_cast<double>(visited);
}

// The first route between two machines, which those between all others follow.
void first_route_by_router(benchmark::State& state) {
  const Topology topology = rail_cluster(static_cast<int>(state.range(0)));
  std::uint64_t visited = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto router = std::make_unique<Router>(topology);
    Route route{.bandwidth_bytes_per_s = std::numeric_limits<double>::infinity()};
    state.ResumeTiming();
    const auto [from, to] = ends_of(topology, 0);
    router->append(from, to, route);
    benchmark::DoNotOptimize(route);
    visited = router->visited_count();
    state.PauseTiming();
    router.reset();
    state.ResumeTiming();
  }
  set_exact(state, "visited", static_cast<double>(visited));
}

BENCHMARK(first_route_by_router)->Arg(32)->Arg(256)->Arg(2048)->Unit(benchmark::kMicrosecond);
BENCHMARK(route_by_boost)->Arg(32)->Arg(256)->Arg(2048)->Unit(benchmark::kMicrosecond);
BENCHMARK(route_by_router)->Arg(32)->Arg(256)->Arg(2048)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tandem
