// Graphviz' language: graphviz.org/doc/info/lang.html. Boost.Graph reads it, too, but keeps no place.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "topologies/readers/graphs/attributed_graph.h"
#include "topologies/readers/graphs/dot_tokens.h"

namespace tandem {
namespace {

constexpr int kDeepestDot = 1000;
// What a short text can make much of: edges between all nodes of two subgraphs, and nodes of subgraphs that are named
// again.
constexpr std::size_t kMostMultiplied = std::size_t{1} << 20;
constexpr std::size_t kMostRepeated = std::size_t{1} << 24;

// What nodes and edges have that follow in a graph or subgraph.
struct DotDefaults {
  Attributes nodes{}, edges{};
};

class DotParser {
 public:
  DotParser(std::string_view text, const std::string& file) : tokens_(text, file) {}

  AttributedGraph parse() {
    is_strict_ = tokens_.peek().is_keyword("strict");
    if (is_strict_) tokens_.take();
    is_directed_ = tokens_.peek().is_keyword("digraph");
    if (!is_directed_ && !tokens_.peek().is_keyword("graph")) tokens_.refuse("graph or digraph");
    tokens_.take();
    if (is_word()) take_id();
    DotDefaults defaults;
    read_body(defaults);
    if (tokens_.peek().kind != DotToken::Kind::end) tokens_.refuse("the end of the file");
    return std::move(graph_);
  }

 private:
  using Nodes = std::set<std::size_t>;
  struct Subgraph {
    Nodes nodes{};
    DotDefaults defaults{};  // it keeps them where it is opened again
  };
  // One end of an edge: what is named here and, where that is a named subgraph, the subgraph.
  struct End {
    Nodes named{};
    const Subgraph* subgraph = nullptr;
    std::size_t added = 0;  // new ones of the subgraph
  };
  // The nodes named between two braces, and how many of each subgraph's nodes are among them.
  struct Body {
    Nodes named{};
    std::map<const Subgraph*, std::size_t> joined{};
  };

  bool is_word() const { return tokens_.peek().kind == DotToken::Kind::word; }
  void expect(std::string_view mark) {
    if (!tokens_.peek().is(mark)) tokens_.refuse(fmt::format("'{}'", mark));
    tokens_.take();
  }
  bool take_if(std::string_view mark) {
    if (!tokens_.peek().is(mark)) return false;
    tokens_.take();
    return true;
  }

  // A name or value; texts in quotes may be joined by +.
  DotToken take_id() {
    if (!is_word()) tokens_.refuse("a name");
    DotToken id = tokens_.take();
    while (id.is_quoted && take_if("+")) {
      if (!is_word()) tokens_.refuse("a text after '+'");
      id.text += tokens_.take().text;
    }
    return id;
  }

  // Returns the nodes that are named between the braces.
  Nodes read_body(DotDefaults& defaults) {
    const FilePlace begin = tokens_.peek().place;
    expect("{");
    if (++depth_ > kDeepestDot) tokens_.fail(begin, fmt::format("nested more than {} levels deep", kDeepestDot));
    Body body;
    while (!take_if("}")) {
      if (!take_if(";")) read_statement(defaults, body);
    }
    --depth_;
    return std::move(body.named);
  }

  void read_statement(DotDefaults& defaults, Body& body) {
    const DotToken first = tokens_.peek();
    if (first.is_keyword("graph") || first.is_keyword("node") || first.is_keyword("edge")) {
      tokens_.take();
      const Attributes read = read_attributes();
      if (first.is_keyword("node")) set_all(read, defaults.nodes);
      if (first.is_keyword("edge")) set_all(read, defaults.edges);
      return;
    }
    if (!is_word() && !first.is("{")) tokens_.refuse("a statement or '}'");
    End begin = read_end(defaults);
    if (is_assignment_) return;
    if (!is_at_edge() && is_subgraph_) {
      if (tokens_.peek().is("[")) read_attributes();  // of nothing that is an edge
      return join(std::move(begin), body, first.place);
    }
    std::vector<Nodes> chain{all_of(std::move(begin), first.place)};
    std::vector<FilePlace> places{first.place};
    while (is_at_edge()) {
      if (tokens_.peek().is("->") != is_directed_)
        tokens_.refuse(is_directed_ ? "'->' in a digraph" : "'--' in a graph");
      tokens_.take();
      places.push_back(tokens_.peek().place);
      End end = read_end(defaults);
      if (is_assignment_) tokens_.fail(places.back(), "expected a node after an edge, found an assignment");
      chain.push_back(all_of(std::move(end), places.back()));
    }
    const Attributes own = tokens_.peek().is("[") ? read_attributes() : Attributes{};
    if (chain.size() == 1) set_all(own, graph_.nodes[*chain.front().begin()].attributes);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      add_edges(chain[i], chain[i + 1], defaults.edges, own, places[i]);
    }
    for (Nodes& nodes : chain) body.named.merge(nodes);
  }

  bool is_at_edge() const { return tokens_.peek().is("->") || tokens_.peek().is("--"); }

  Nodes all_of(End end, const FilePlace& place) {
    if (end.subgraph == nullptr) return std::move(end.named);
    repeat(end.subgraph->nodes.size(), place);
    return end.subgraph->nodes;
  }

  // Adds a subgraph's nodes to those between the braces around it: only the new ones, if it has the others already.
  void join(End end, Body& body, const FilePlace& place) {
    if (end.subgraph != nullptr) {
      const Nodes& all = end.subgraph->nodes;
      std::size_t& joined = body.joined[end.subgraph];
      if (joined + end.added < all.size()) {
        repeat(all.size(), place);
        body.named.insert(all.begin(), all.end());
      }
      joined = all.size();
    }
    body.named.merge(end.named);
  }

  void repeat(std::size_t nodes, const FilePlace& place) {
    repeated_ += nodes;
    if (repeated_ > kMostRepeated) tokens_.fail(place, "subgraphs with many nodes are named again too often");
  }

  // Reads a node or a subgraph. An assignment to an attribute of the graph, name=value, names no node.
  End read_end(const DotDefaults& defaults) {
    is_assignment_ = false;
    is_subgraph_ = tokens_.peek().is("{") || tokens_.peek().is_keyword("subgraph");
    if (is_subgraph_) return read_subgraph(defaults);
    const DotToken id = take_id();
    if (take_if("=")) {
      take_id();
      is_assignment_ = true;
      return {};
    }
    for (int ports = 0; ports < 2 && take_if(":"); ++ports) take_id();
    return {.named = {node_of(id, defaults)}};
  }

  // A subgraph's name without braces means the nodes that it had before.
  End read_subgraph(const DotDefaults& around) {
    std::string name;
    if (tokens_.peek().is_keyword("subgraph")) {
      tokens_.take();
      if (is_word()) name = take_id().text;
    }
    End end;
    DotDefaults unnamed;
    DotDefaults* defaults = &unnamed;
    Subgraph* known = nullptr;
    if (!name.empty()) {
      known = &subgraphs_.try_emplace(name, Subgraph{.defaults = around}).first->second;
      defaults = &known->defaults;
    } else {
      unnamed = around;
    }
    if (name.empty() || tokens_.peek().is("{")) end.named = read_body(*defaults);
    is_subgraph_ = true;
    is_assignment_ = false;
    if (known == nullptr) return end;
    const std::size_t before = known->nodes.size();
    known->nodes.insert(end.named.begin(), end.named.end());
    end.added = known->nodes.size() - before;
    end.subgraph = known;
    return end;
  }

  Attributes read_attributes() {
    Attributes read;
    if (!tokens_.peek().is("[")) tokens_.refuse("'['");
    while (take_if("[")) {
      while (!take_if("]")) {
        if (!is_word()) tokens_.refuse("an attribute or ']'");
        const DotToken name = take_id();
        PlacedText value{"true", name.place};
        if (take_if("=")) value.text = take_id().text;
        read[name.text] = std::move(value);
        if (!take_if(";")) take_if(",");
      }
    }
    return read;
  }

  static void set_all(const Attributes& from, Attributes& to) {
    for (const auto& [name, value] : from) to[name] = value;
  }

  std::size_t node_of(const DotToken& id, const DotDefaults& defaults) {
    const auto [known, is_new] = by_id_.emplace(id.text, graph_.nodes.size());
    if (is_new) graph_.nodes.push_back({id.text, defaults.nodes, id.place});
    return known->second;
  }

  void add_edges(const Nodes& from, const Nodes& to, const Attributes& defaults, const Attributes& own,
                 const FilePlace& place) {
    const std::size_t edges = from.size() * to.size();
    if (edges > 1) multiplied_ += edges;
    if (multiplied_ > kMostMultiplied) {
      tokens_.fail(place, fmt::format("more than {} edges between subgraphs", kMostMultiplied));
    }
    for (const std::size_t a : from) {
      for (const std::size_t b : to) set_all(own, edge_of(a, b, defaults, place).attributes);
    }
  }

  // A strict graph has one edge at most between two nodes.
  AttributedGraph::Edge& edge_of(std::size_t a, std::size_t b, const Attributes& defaults, const FilePlace& place) {
    if (is_strict_) {
      const auto ends = is_directed_ ? std::pair(a, b) : std::pair(std::min(a, b), std::max(a, b));
      const auto [known, is_new] = by_ends_.emplace(ends, graph_.edges.size());
      if (!is_new) return graph_.edges[known->second];
    }
    graph_.edges.push_back({a, b, defaults, place});
    return graph_.edges.back();
  }

  DotTokens tokens_;
  AttributedGraph graph_{};
  bool is_directed_ = false, is_strict_ = false;
  bool is_assignment_ = false, is_subgraph_ = false;  // what read_end() read last
  int depth_ = 0;
  std::size_t multiplied_ = 0, repeated_ = 0;
  std::map<std::string, std::size_t> by_id_{};
  std::map<std::string, Subgraph> subgraphs_{};
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> by_ends_{};
};

}  // namespace

AttributedGraph parse_dot(std::string_view text, const std::string& file) {
  return DotParser(text, file).parse();
}

const PlacedText& attribute_of(const Attributes& attributes, std::string_view name) {
  static const PlacedText kNone;
  const auto found = attributes.find(name);
  return found == attributes.end() ? kNone : found->second;
}

}  // namespace tandem
