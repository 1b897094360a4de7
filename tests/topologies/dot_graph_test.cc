// Graphviz' language: what a text names, and what each node and edge has.
#include <gmock/gmock.h>

#include "topologies/base/error.h"
#include "topologies/readers/graphs/attributed_graph.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

AttributedGraph read(const std::string& text) {
  return parse_dot(text, "g.dot");
}

// "a-b" of each edge, with the attribute `bw` where it has one: "a-b 5".
std::vector<std::string> edges_of(const std::string& text) {
  const AttributedGraph graph = read(text);
  std::vector<std::string> edges;
  for (const AttributedGraph::Edge& edge : graph.edges) {
    const std::string bw = attribute_of(edge.attributes, "bw").text;
    edges.push_back(graph.nodes[edge.from].id + "-" + graph.nodes[edge.to].id + (bw.empty() ? "" : " " + bw));
  }
  return edges;
}

// "a gpu" of each node and its attribute `kind`.
std::vector<std::string> nodes_of(const std::string& text) {
  std::vector<std::string> nodes;
  for (const AttributedGraph::Vertex& vertex : read(text).nodes) {
    const std::string kind = attribute_of(vertex.attributes, "kind").text;
    nodes.push_back(vertex.id + (kind.empty() ? "" : " " + kind));
  }
  return nodes;
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(DotGraph, AChainHasAnEdgeBetweenEachTwo) {
  EXPECT_THAT(edges_of("graph { a -- b -- c -- a [bw=5] }"), ElementsAre("a-b 5", "b-c 5", "c-a 5"));
  EXPECT_THAT(edges_of("digraph { a -> {b c} -> d }"), ElementsAre("a-b", "a-c", "b-d", "c-d"));
  EXPECT_THAT(edges_of("strict graph { a -- b [bw=1]; b -- a [bw=2] }"), ElementsAre("a-b 2"));
}

TEST(DotGraph, DefaultsAreOfWhatFollowsBetweenTheBraces) {
  EXPECT_THAT(nodes_of("graph { a; node [kind=gpu]; b; { node [kind=nic]; c } d; subgraph s { e } }"),
              ElementsAre("a", "b gpu", "c nic", "d gpu", "e gpu"));
  EXPECT_THAT(edges_of("graph { a -- b; edge [bw=1]; subgraph s { edge [bw=2]; c -- d } a -- c }"),
              ElementsAre("a-b", "c-d 2", "a-c 1"));
}

TEST(DotGraph, ASubgraphThatIsOpenedAgainKeepsItsDefaults) {
  EXPECT_THAT(nodes_of("graph { subgraph s { node [kind=gpu]; a } node [kind=nic]; b; subgraph s { c } d }"),
              ElementsAre("a gpu", "b nic", "c gpu", "d nic"));
  EXPECT_THAT(edges_of("graph { subgraph s { edge [bw=2] } a -- b; subgraph s { c -- d } }"),
              ElementsAre("a-b", "c-d 2"));
}

TEST(DotGraph, ASubgraphThatIsOpenedAgainHasItsNodesOfBefore) {
  EXPECT_THAT(edges_of("graph { subgraph s { a } subgraph s { b } -- x; subgraph s -- y }"),
              ElementsAre("a-x", "b-x", "a-y", "b-y"));
  EXPECT_THAT(edges_of("graph { subgraph s { a b } { subgraph s } -- x; { subgraph s { c } } -- y }"),
              ElementsAre("a-x", "b-x", "a-y", "b-y", "c-y"));
  EXPECT_THAT(edges_of("graph { { subgraph s { a } { subgraph s { b } } subgraph s { c } } -- x }"),
              ElementsAre("a-x", "b-x", "c-x"));
  EXPECT_THAT(edges_of("graph { subgraph s { subgraph s { a } b } -- x; subgraph t [color=red]; c }"),
              ElementsAre("a-x", "b-x"));
}

TEST(DotGraph, NamesMayBeTextsPortsAndHtml) {
  const AttributedGraph graph =
      read("digraph { \"a\" + \"b\" -> c:port:ne; d [label=<<b>x</b> y>, kind=\"g\" + \"pu\"]; graph [x=1]; y=2 }");
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.nodes[0].id, "ab");
  EXPECT_EQ(graph.nodes[1].id, "c");
  EXPECT_EQ(graph.edges.size(), 1u);
  EXPECT_EQ(attribute_of(graph.nodes[2].attributes, "kind").text, "gpu");
}

// A short text must not take all memory or hours.
TEST(DotGraph, WhatAShortTextMultipliesHasLimits) {
  std::string some = "{", others = "{";
  for (int i = 0; i < 1100; ++i) {
    some += "a" + std::to_string(i) + " ";
    others += "b" + std::to_string(i) + " ";
  }
  EXPECT_THAT(refusal("graph { " + some + "} -- " + others + "} }"), HasSubstr("more than 1048576 edges"));
  std::string again = "graph { subgraph s " + some + "} ";
  for (int i = 0; i < 16000; ++i) again += "{ subgraph s }";
  EXPECT_THAT(refusal(again + "}"), HasSubstr("named again too often"));
  std::string many = "graph { ";
  for (int i = 0; i < 50000; ++i) many += "subgraph s { n" + std::to_string(i) + " } ";
  EXPECT_THAT(refusal(many + "}"), IsEmpty());
}

}  // namespace
}  // namespace tandem
