// Graphviz' language: graphviz.org/doc/info/lang.html. Boost.Graph reads it, too, but keeps no place.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "topologies/readers/attributed_graph.h"
#include "topologies/readers/dot_tokens.h"

namespace tandem {
namespace {

constexpr int kDeepestDot = 1000;
constexpr std::size_t kMostDotEdges = std::size_t{1} << 24;

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
    read_body({});
    if (tokens_.peek().kind != DotToken::Kind::end) tokens_.refuse("the end of the file");
    return std::move(graph_);
  }

 private:
  using Nodes = std::set<std::size_t>;

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
  Nodes read_body(DotDefaults defaults) {
    const FilePlace begin = tokens_.peek().place;
    expect("{");
    if (++depth_ > kDeepestDot) tokens_.fail(begin, fmt::format("nested more than {} levels deep", kDeepestDot));
    Nodes named;
    while (!take_if("}")) {
      if (!take_if(";")) read_statement(defaults, named);
    }
    --depth_;
    return named;
  }

  void read_statement(DotDefaults& defaults, Nodes& named) {
    const DotToken first = tokens_.peek();
    if (first.is_keyword("graph") || first.is_keyword("node") || first.is_keyword("edge")) {
      tokens_.take();
      const Attributes read = read_attributes();
      if (first.is_keyword("node")) set_all(read, defaults.nodes);
      if (first.is_keyword("edge")) set_all(read, defaults.edges);
      return;
    }
    if (!is_word() && !first.is("{")) tokens_.refuse("a statement or '}'");
    std::vector<Nodes> chain{read_end(defaults)};
    std::vector<FilePlace> places{first.place};
    if (chain.empty() || is_assignment_) return;
    while (tokens_.peek().is("->") || tokens_.peek().is("--")) {
      if (tokens_.peek().is("->") != is_directed_)
        tokens_.refuse(is_directed_ ? "'->' in a digraph" : "'--' in a graph");
      tokens_.take();
      places.push_back(tokens_.peek().place);
      chain.push_back(read_end(defaults));
      if (is_assignment_) tokens_.fail(places.back(), "expected a node after an edge, found an assignment");
    }
    const Attributes own = tokens_.peek().is("[") ? read_attributes() : Attributes{};
    if (chain.size() == 1 && !is_subgraph_) set_all(own, graph_.nodes[*chain.front().begin()].attributes);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      add_edges(chain[i], chain[i + 1], defaults.edges, own, places[i]);
    }
    for (const Nodes& nodes : chain) named.insert(nodes.begin(), nodes.end());
  }

  // Reads a node or a subgraph. An assignment to an attribute of the graph, name=value, names no node.
  Nodes read_end(const DotDefaults& defaults) {
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
    return {node_of(id, defaults)};
  }

  // A subgraph's name without braces means the nodes that it had before.
  Nodes read_subgraph(const DotDefaults& defaults) {
    std::string name;
    if (tokens_.peek().is_keyword("subgraph")) {
      tokens_.take();
      if (is_word()) name = take_id().text;
    }
    Nodes named;
    if (name.empty() || tokens_.peek().is("{")) named = read_body(defaults);
    is_subgraph_ = true;
    is_assignment_ = false;
    if (name.empty()) return named;
    Nodes& known = subgraphs_[name];
    known.insert(named.begin(), named.end());
    return known;
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
    if (graph_.edges.size() + from.size() * to.size() > kMostDotEdges) {
      tokens_.fail(place, "more than 16 million edges");
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
  std::map<std::string, std::size_t> by_id_{};
  std::map<std::string, Nodes> subgraphs_{};
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
