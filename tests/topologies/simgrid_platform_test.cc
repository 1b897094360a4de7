// Platforms of SimGrid: what their routes tell of the network between hosts.
#include <gmock/gmock.h>

#include "tests/topologies/testing.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::ElementsAre;

// A zone of hosts and `inside`, which may be followed by more in the platform.
Topology platform(const std::string& hosts, const std::string& inside, const std::string& routing = "Full") {
  std::string text = "<platform version=\"4.1\"><zone id=\"z\" routing=\"" + routing + "\">";
  for (const char host : hosts) text += "<host id=\"" + std::string(1, host) + "\" speed=\"1Gf\"/>";
  return import_text(text + inside + "</zone></platform>", "p.xml", {}).topology;
}

std::string platform_link(const std::string& id, const std::string& rate, const std::string& latency,
                          const std::string& policy = "SHARED") {
  return "<link id=\"" + id + "\" bandwidth=\"" + rate + "\" latency=\"" + latency + "\" sharing_policy=\"" + policy +
         "\"/>";
}

// Its links are of one letter each; one that is followed by '-' is crossed downwards.
std::string platform_route(char from, char to, const std::string& links) {
  std::string text = std::string("<route src=\"") + from + "\" dst=\"" + to + "\">";
  for (std::size_t i = 0; i < links.size(); ++i) {
    const bool is_down = i + 1 < links.size() && links[i + 1] == '-';
    text += std::string("<link_ctn id=\"") + links[i] + "\" direction=\"" + (is_down ? "DOWN" : "UP") + "\"/>";
    i += is_down ? 1 : 0;
  }
  return text + "</route>";
}

Route route_between(const Topology& topology, const std::string& from, const std::string& to) {
  return *Router(topology).route(node_named(topology, from), node_named(topology, to));
}

// The links that two routes cross in the same direction.
std::vector<std::string> shared_links(const Topology& topology, const Route& one, const Route& other) {
  std::vector<std::string> shared;
  for (const Edge& hop : one.hops) {
    for (const Edge& second : other.hops) {
      if (hop.link != second.link || hop.forward != second.forward) continue;
      const Link link = topology.link(hop.link);
      shared.push_back(topology.node(link.from).name + " " + topology.node(link.to).name);
    }
  }
  return shared;
}

TEST(SimgridPlatform, RoutesOfLinksMeetInASwitch) {
  const Topology topology =
      import_topology(TANDEM_SOURCE_DIR "/tests/topologies/samples/made/simgrid_star.xml").topology;
  EXPECT_EQ(topology.worker_count(), 3);
  EXPECT_THAT(way(topology, "g0", "g2"), ElementsAre("g0", "switch1", "g2"));
  EXPECT_EQ(route_between(topology, "g0", "g1").bandwidth_bytes_per_s, 12.5e9);
  EXPECT_EQ(route_between(topology, "g1", "g2").bandwidth_bytes_per_s,
            10.0 * 1024 * 1024 * 1024 < 12.5e9 ? 10737418240.0 : 12.5e9);
  EXPECT_EQ(topology.device(node_named(topology, "g0"))->cores, 16);
  EXPECT_EQ(topology.device(node_named(topology, "g2"))->peak_flops_per_s.at(DType::f32).value, 1e12);
}

TEST(SimgridPlatform, ABusIsSharedByAllItsHosts) {
  const Topology topology = platform("abc", platform_link("l", "100MBps", "3us") + platform_route('a', 'b', "l") +
                                                platform_route('a', 'c', "l") + platform_route('b', 'c', "l"));
  EXPECT_THAT(way(topology, "a", "c"), ElementsAre("a", "l.in", "l.out", "c"));
  for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c"), std::pair("c", "a")}) {
    const Route route = route_between(topology, from, to);
    EXPECT_EQ(route.latency_s, 3e-6);
    EXPECT_EQ(route.bandwidth_bytes_per_s, 100e6);
  }
  EXPECT_THAT(shared_links(topology, route_between(topology, "a", "b"), route_between(topology, "c", "a")),
              ElementsAre("l.in l.out"));
}

const std::string kThreeLinks =
    platform_link("1", "1GBps", "1us") + platform_link("2", "2GBps", "2us") + platform_link("3", "3GBps", "4us");

TEST(SimgridPlatform, ABackboneIsOnEveryRoute) {
  const Topology topology =
      platform("abc", kThreeLinks + platform_link("b", "1.5GBps", "100us") + platform_route('a', 'b', "1b2") +
                          platform_route('c', 'a', "3b1") + platform_route('b', 'c', "2b3"));
  EXPECT_THAT(way(topology, "b", "c"), ElementsAre("b", "switch2", "b.in", "b.out", "switch3", "c"));
  const Route ab = route_between(topology, "a", "b"), cb = route_between(topology, "c", "b");
  EXPECT_DOUBLE_EQ(ab.latency_s, 103e-6);
  EXPECT_EQ(ab.bandwidth_bytes_per_s, 1e9);
  EXPECT_DOUBLE_EQ(cb.latency_s, 106e-6);
  EXPECT_EQ(cb.bandwidth_bytes_per_s, 1.5e9);
  EXPECT_THAT(shared_links(topology, ab, route_between(topology, "b", "c")), ElementsAre("b.in b.out"));
}

TEST(SimgridPlatform, ABackboneOfTwoDirectionsIsTwo) {
  const Topology topology = platform(
      "abc", platform_link("1", "1GBps", "1us", "SPLITDUPLEX") + platform_link("2", "2GBps", "2us", "SPLITDUPLEX") +
                 platform_link("3", "3GBps", "4us", "SPLITDUPLEX") + platform_link("b", "4GBps", "8us", "SPLITDUPLEX") +
                 platform_route('a', 'b', "1b2-") + platform_route('a', 'c', "1b3-") +
                 platform_route('b', 'c', "2b3-"));
  const Route ab = route_between(topology, "a", "b"), bc = route_between(topology, "b", "c");
  EXPECT_DOUBLE_EQ(bc.latency_s, 14e-6);
  EXPECT_EQ(bc.bandwidth_bytes_per_s, 2e9);
  EXPECT_THAT(shared_links(topology, ab, bc), ElementsAre("b.in b.out"));
  EXPECT_THAT(shared_links(topology, ab, route_between(topology, "c", "b")), testing::Not(Contains("b.in b.out")));
}

TEST(SimgridPlatform, FlowsFromTwoHostsDoNotShareAFatpipe) {
  const Topology topology = platform("abc", kThreeLinks + platform_link("b", "0.5GBps", "100us", "FATPIPE") +
                                                platform_route('a', 'b', "1b2") + platform_route('a', 'c', "1b3") +
                                                platform_route('b', 'c', "2b3"));
  const Route ac = route_between(topology, "a", "c"), bc = route_between(topology, "b", "c");
  EXPECT_DOUBLE_EQ(ac.latency_s, 105e-6);
  EXPECT_EQ(ac.bandwidth_bytes_per_s, 0.5e9);
  EXPECT_THAT(shared_links(topology, ac, bc), ElementsAre("b.out switch3", "c switch3"));
  EXPECT_EQ(route_between(topology, "b.out", "switch3").bandwidth_bytes_per_s, 3 * 0.5e9);  // all that comes in
}

// Two groups of hosts, each with a backbone, and a link between these.
TEST(SimgridPlatform, BackbonesBehindEachOther) {
  const Topology topology =
      platform("abcd", kThreeLinks + platform_link("4", "4GBps", "8us") + platform_link("l", "5GBps", "100us") +
                           platform_link("r", "5GBps", "200us") + platform_link("x", "0.5GBps", "1ms") +
                           platform_route('a', 'b', "1l2") + platform_route('c', 'd', "3r4") +
                           platform_route('a', 'c', "1lxr3") + platform_route('d', 'a', "4rxl1") +
                           platform_route('b', 'c', "2lxr3") + platform_route('b', 'd', "2lxr4"));
  EXPECT_DOUBLE_EQ(route_between(topology, "b", "a").latency_s, 103e-6);
  EXPECT_EQ(route_between(topology, "b", "a").bandwidth_bytes_per_s, 1e9);
  EXPECT_DOUBLE_EQ(route_between(topology, "d", "b").latency_s, 1310e-6);
  EXPECT_EQ(route_between(topology, "d", "b").bandwidth_bytes_per_s, 0.5e9);
}

// A machine carries nothing of others: what goes through a host goes through a switch beside it.
TEST(SimgridPlatform, RoutesGoThroughHosts) {
  const std::string edges = kThreeLinks + platform_route('a', 'b', "1") + platform_route('b', 'c', "2");
  for (const Topology& topology :
       {platform("abc", edges + platform_route('a', 'c', "12")), platform("abc", edges, "Floyd")}) {
    EXPECT_THAT(way(topology, "a", "c"), ElementsAre("a", "b.switch", "c"));
    EXPECT_THAT(way(topology, "a", "b"), ElementsAre("a", "b.switch", "b"));
    EXPECT_DOUBLE_EQ(route_between(topology, "a", "c").latency_s, 3e-6);
    EXPECT_EQ(route_between(topology, "c", "b").latency_s, 2e-6);
    EXPECT_EQ(route_between(topology, "c", "b").bandwidth_bytes_per_s, 2e9);
  }
}

// Links in both directions of their own are media where they would else be two ways of the same pair.
TEST(SimgridPlatform, OneWayRoutesHaveLinksOfTheirOwn) {
  std::string there = platform_route('a', 'b', "1"), back = platform_route('b', 'a', "3");
  for (std::string* route : {&there, &back}) route->insert(6, " symmetrical=\"NO\"");
  const Topology topology = platform("ab", kThreeLinks + there + back);
  EXPECT_EQ(route_between(topology, "a", "b").latency_s, 1e-6);
  EXPECT_EQ(route_between(topology, "b", "a").latency_s, 4e-6);
}

TEST(SimgridPlatform, ClustersHaveTheirBackbones) {
  const auto clusters = [](const std::string& more) {
    std::string text = "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">";
    for (const char* name : {"c", "d"}) {
      text += std::string("<cluster id=\"") + name + "\" prefix=\"" + name + "-\" suffix=\".me\" radical=\"0-2\" " +
              "speed=\"1Gf\" bw=\"1GBps\" lat=\"50us\" bb_bw=\"2GBps\" bb_lat=\"500us\"" + more + "/>";
    }
    text += platform_link("x", "1.5GBps", "1ms") +
            "<zoneRoute src=\"c\" dst=\"d\" gw_src=\"c-c_router.me\" gw_dst=\"d-d_router.me\"><link_ctn id=\"x\"/>"
            "</zoneRoute></zone></platform>";
    return import_text(text, "c.xml", {}).topology;
  };
  for (const Topology& topology : {clusters(""), clusters(" sharing_policy=\"SHARED\"")}) {
    EXPECT_DOUBLE_EQ(route_between(topology, "c-0.me", "c-2.me").latency_s, 600e-6);
    EXPECT_EQ(route_between(topology, "c-0.me", "c-2.me").bandwidth_bytes_per_s, 1e9);
    EXPECT_DOUBLE_EQ(route_between(topology, "c-0.me", "d-1.me").latency_s, 2.1e-3);
    EXPECT_THAT(shared_links(topology, route_between(topology, "c-0.me", "c-1.me"),
                             route_between(topology, "c-2.me", "d-0.me")),
                ElementsAre("c.backbone.in c.backbone.out"));
  }
}

TEST(SimgridPlatform, FlatClustersAreStars) {
  const Topology topology =
      import_text(
          "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\".me\" radical=\"0-2,5\" speed=\"1Gf\" "
          "bw=\"125MBps\" lat=\"50us\"/></platform>",
          "c.xml", {})
          .topology;
  EXPECT_EQ(topology.worker_count(), 4);
  EXPECT_THAT(way(topology, "n0.me", "n5.me"), ElementsAre("n0.me", "c", "n5.me"));
  EXPECT_EQ(route_between(topology, "n0.me", "n5.me").bandwidth_bytes_per_s, 125e6);
}

}  // namespace
}  // namespace tandem
