#include "topologies/topology.h"

#include <gmock/gmock.h>

#include "tests/topologies/testing.h"
#include "topologies/base/error.h"
#include "topologies/graph.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Topology, KeepsNodesInTheOrderTheyCame) {
  Topology topology("t");
  const NodeIndex a = add_test_node(topology, "a", NodeKind::gpu, 0);
  const NodeIndex b = add_test_node(topology, "b", NodeKind::cpu, 0);
  const NodeIndex c = add_test_node(topology, "c", NodeKind::gpu, 0);
  const NodeIndex d = add_test_node(topology, "d", NodeKind::gpu, 1);
  add_test_node(topology, "s", NodeKind::network_switch, kNoWorker);
  EXPECT_EQ(topology.worker_count(), 2);
  EXPECT_EQ(topology.nodes_of(0, NodeKind::gpu), (std::vector<NodeIndex>{a, c}));
  EXPECT_EQ(topology.nodes_of(0, NodeKind::cpu), (std::vector<NodeIndex>{b}));
  EXPECT_EQ(topology.nodes_of(1, NodeKind::gpu), (std::vector<NodeIndex>{d}));
  EXPECT_EQ(topology.find("c"), c);
  EXPECT_EQ(topology.find("z"), std::nullopt);
}

TEST(Topology, ADuplexLinkIsTwoEdgesAndAOneWayLinkIsOne) {
  Topology topology("t");
  const NodeIndex a = add_test_node(topology, "a", NodeKind::gpu);
  const NodeIndex b = add_test_node(topology, "b", NodeKind::gpu);
  const auto model = test_link(LinkKind::nvlink, 1e9, 0);
  topology.add_link(a, b, model);
  EXPECT_EQ(boost::num_edges(graph_of(topology)), 2u);
  topology.add_link(a, b, model, Direction::one_way);
  EXPECT_EQ(boost::num_edges(graph_of(topology)), 3u);
  topology.add_link(a, b, model, Direction::half_duplex);
  EXPECT_EQ(boost::num_edges(graph_of(topology)), 5u);
  EXPECT_EQ(topology.link_count(), 3u);
}

TEST(Topology, ItsProvenanceIsThatOfItsWeakestFigure) {
  const auto with = [](Provenance bandwidth, Provenance latency) {
    auto model = std::make_shared<LinkModel>(*test_link(LinkKind::nvlink, 1e9, 0));
    model->bandwidth_bytes_per_s.provenance = bandwidth;
    model->latency_s.provenance = latency;
    Topology topology("t");
    const NodeIndex a = add_test_node(topology, "a", NodeKind::nvswitch);
    topology.add_link(a, add_test_node(topology, "b", NodeKind::nvswitch), model);
    return topology.provenance();
  };
  EXPECT_EQ(with(Provenance::measured, Provenance::measured), Provenance::measured);
  EXPECT_EQ(with(Provenance::measured, Provenance::vendor), Provenance::vendor);
  EXPECT_EQ(with(Provenance::assumed, Provenance::vendor), Provenance::assumed);
}

TEST(Topology, RefusesWhatIsNoGraph) {
  Topology topology("t");
  const NodeIndex a = add_test_node(topology, "a", NodeKind::gpu);
  EXPECT_THAT([&] { add_test_node(topology, "a", NodeKind::gpu); },
              ThrowsMessage<UsageError>(HasSubstr("two nodes named 'a'")));
  EXPECT_THAT([&] { add_test_node(topology, "b", NodeKind::gpu, 2); },
              ThrowsMessage<UsageError>(HasSubstr("a gap in the numbers of the workers")));
  EXPECT_THAT([&] { topology.add_link(a, a, test_link(LinkKind::pcie, 1, 0)); },
              ThrowsMessage<UsageError>(HasSubstr("to itself")));
  EXPECT_THAT([&] { topology.add_link(a, 7, test_link(LinkKind::pcie, 1, 0)); },
              ThrowsMessage<UsageError>(HasSubstr("does not exist")));
  EXPECT_EQ(topology.node_count(), 1U) << "what is refused changes nothing";
  EXPECT_EQ(topology.link_count(), 0U);
  EXPECT_EQ(topology.find("b"), std::nullopt);
}

}  // namespace
}  // namespace tandem
