#include "topologies/readers/graph_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphml.hpp>
#include <boost/graph/graphviz.hpp>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "topologies/base/units.h"
#include "topologies/readers/described_graph.h"
#include "topologies/readers/xml_checks.h"

namespace tandem {
namespace {

constexpr int kDeepestGraph = 64;  // nested subgraphs

struct FileNode {
  std::string id, name, kind, device, architecture, worker, port, transport;
  int line = 0;  // 0: unknown
};
struct FileEdge {
  std::string kind, bw, lat, duplex;
};
using FileGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, FileNode, FileEdge>;
using UndirectedFileGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, FileNode, FileEdge>;

[[noreturn]] void refuse_graph(const std::string& file, const std::string& message) {
  throw InputError({{.file = file, .path = "", .message = message}});
}

// The attributes that a file has and nothing here reads, but those of drawings.
class OtherProperties {
 public:
  boost::shared_ptr<boost::dynamic_property_map> operator()(const std::string& name, const boost::any&,
                                                            const boost::any&) {
    static const std::set<std::string_view> kDrawn{
        "arrowhead", "arrowsize", "arrowtail", "bb",        "bgcolor",   "center",   "class",    "color",
        "comment",   "dir",       "fillcolor", "fixedsize", "fontcolor", "fontname", "fontsize", "headport",
        "height",    "href",      "id",        "label",     "labelloc",  "layout",   "len",      "margin",
        "nodesep",   "nojustify", "ordering",  "overlap",   "penwidth",  "pos",      "rank",     "rankdir",
        "ranksep",   "ratio",     "shape",     "sides",     "size",      "splines",  "style",    "tailport",
        "tooltip",   "url",       "URL",       "width",     "x",         "xlabel",   "y",        "z"};
    if (!kDrawn.contains(name)) names_->insert(name);
    return {};
  }
  const std::set<std::string>& names() const { return *names_; }

 private:
  std::shared_ptr<std::set<std::string>> names_ = std::make_shared<std::set<std::string>>();  // Boost copies the object
};

void note_others(const OtherProperties& others, const std::string& file, ImportedTopology& imported) {
  for (const std::string& name : others.names()) {
    imported.notes.push_back(fmt::format("{}: attribute '{}' has no effect here", file, shortened(name)));
  }
}

template <typename Graph>
boost::dynamic_properties properties_of(Graph& graph, const OtherProperties& others) {
  boost::dynamic_properties properties(others);
  properties.property("node_id", boost::get(&FileNode::id, graph));
  properties.property("name", boost::get(&FileNode::name, graph));
  properties.property("kind", boost::get(&FileNode::kind, graph));
  properties.property("device", boost::get(&FileNode::device, graph));
  properties.property("architecture", boost::get(&FileNode::architecture, graph));
  properties.property("worker", boost::get(&FileNode::worker, graph));
  properties.property("port", boost::get(&FileNode::port, graph));
  properties.property("transport", boost::get(&FileNode::transport, graph));
  properties.property("kind", boost::get(&FileEdge::kind, graph));
  properties.property("bw", boost::get(&FileEdge::bw, graph));
  properties.property("lat", boost::get(&FileEdge::lat, graph));
  properties.property("duplex", boost::get(&FileEdge::duplex, graph));
  return properties;
}

class Description {
 public:
  explicit Description(const std::string& file) : file_(file) {}

  template <typename Graph>
  DescribedGraph of(const Graph& graph) {
    DescribedGraph described;
    for (auto [at, end] = boost::vertices(graph); at != end; ++at) described.nodes.push_back(node(graph[*at], *at));
    for (auto [at, end] = boost::edges(graph); at != end; ++at) {
      DescribedLink link;
      link.from = boost::source(*at, graph);
      link.to = boost::target(*at, graph);
      const FileEdge& edge = graph[*at];
      const std::string ends = described.nodes[link.from].name + " - " + described.nodes[link.to].name;
      link.kind = edge.kind;
      link.bytes_per_s = quantity(edge.bw, Dimension::bytes_per_second, ends + ": bw", "50GB/s");
      link.latency_s = quantity(edge.lat, Dimension::seconds, ends + ": lat", "1us");
      if (edge.duplex == "half") link.direction = Direction::half_duplex;
      if (edge.duplex == "one_way") link.direction = Direction::one_way;
      if (!edge.duplex.empty() && edge.duplex != "full" && edge.duplex != "half" && edge.duplex != "one_way") {
        problem(ends + ": duplex must be full, half or one_way, found '" + edge.duplex + "'");
      }
      described.links.push_back(std::move(link));
    }
    problems_.throw_if_any();
    merge_pairs(described);
    return described;
  }

 private:
  void problem(std::string message) {
    if (++count_ <= 100) problems_.add({file_, 0, 0, "", std::move(message)});
  }

  std::optional<double> quantity(const std::string& text, Dimension dimension, const std::string& what,
                                 const char* example) {
    if (text.empty()) return std::nullopt;
    const auto value = parse_quantity(text, dimension);
    if (!value || *value < 0) {
      problem(fmt::format("{}: expected {}, found '{}'", what, example, shortened(text)));
    } else if (const std::string wrong = quantity_problem(*value, dimension, shortened(text), true); !wrong.empty()) {
      problem(fmt::format("{}: {}", what, wrong));
    }
    return value;
  }

  DescribedNode node(const FileNode& read, std::size_t number) {
    DescribedNode made;
    made.name = !read.name.empty() ? read.name : !read.id.empty() ? read.id : "n" + std::to_string(number);
    made.kind = read.kind;
    made.line = read.line;
    made.device = read.device;
    made.architecture = read.architecture;
    made.transport = read.transport;
    made.port_bytes_per_s = quantity(read.port, Dimension::bytes_per_second, made.name + ": port", "50GB/s");
    if (!read.worker.empty()) {
      int worker = 0;
      const char* end = read.worker.data() + read.worker.size();
      const auto result = std::from_chars(read.worker.data(), end, worker);
      if (result.ec != std::errc{} || result.ptr != end || worker < kNoWorker || worker > 1 << 24) {
        problem(made.name + ": worker: expected a number from 0, or -1, found '" + read.worker + "'");
      } else {
        made.worker = worker;
      }
    }
    return made;
  }

  // Two edges a -> b and b -> a with equal figures are one link in both directions, which other tools write in this
  // way.
  static void merge_pairs(DescribedGraph& graph) {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> first;
    std::vector<DescribedLink> kept;
    for (DescribedLink& link : graph.links) {
      const auto back = first.find({link.to, link.from});
      const bool is_back = back != first.end() && link.from != link.to &&
                           kept[back->second].bytes_per_s == link.bytes_per_s &&
                           kept[back->second].latency_s == link.latency_s && link.direction == Direction::duplex;
      if (is_back) {
        first.erase(back);
        continue;
      }
      first.emplace(std::pair(link.from, link.to), kept.size());
      kept.push_back(std::move(link));
    }
    graph.links = std::move(kept);
  }

  const std::string& file_;
  Diagnostics problems_{};
  int count_ = 0;
};

std::string stem_of(const std::string& file) {
  return std::filesystem::path(file).stem().string();
}

// Returns the text without comments, in lower case, up to the first brace: "strict digraph g ".
std::string head_of(std::string_view text) {
  std::string head;
  for (std::size_t i = 0; i < text.size() && text[i] != '{' && head.size() < 256; ++i) {
    if (text.substr(i).starts_with("//") || (text[i] == '#' && (i == 0 || text[i - 1] == '\n'))) {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (text.substr(i).starts_with("/*")) {
      const std::size_t end = text.find("*/", i);
      if (end == std::string_view::npos) return "";
      i = end + 1;
    } else {
      head += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
    }
  }
  const std::size_t begin = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return begin == std::string::npos ? "" : head.substr(begin);
}

void refuse_deep_braces(std::string_view text, const std::string& file) {
  int depth = 0, deepest = 0;
  for (const char c : text) {
    depth += c == '{' || c == '[' || c == '<' ? 1 : c == '}' || c == ']' || c == '>' ? -1 : 0;
    depth = std::max(depth, 0);
    deepest = std::max(deepest, depth);
  }
  if (deepest > kDeepestGraph + 1000) refuse_graph(file, "nested more than 1000 levels deep");
}

template <typename Graph>
ImportedTopology import_dot_as(std::string_view text, const std::string& file, const ImportOptions& options) {
  Graph graph;
  const OtherProperties others;
  auto properties = properties_of(graph, others);
  try {
    boost::read_graphviz(std::string(text), graph, properties, "node_id");
  } catch (const std::exception& error) {
    std::string what = error.what();
    std::replace(what.begin(), what.end(), '\n', ' ');
    refuse_graph(file, "not a graph in Graphviz' language: " + what);
  }
  ImportedTopology imported = build_described(Description(file).of(graph), file, options, stem_of(file));
  note_others(others, file, imported);
  return imported;
}

}  // namespace

bool is_dot(std::string_view text) {
  std::string head = head_of(text);
  if (head.starts_with("strict")) head = head.substr(std::min(head.find_first_not_of(" \t\r\n", 6), head.size()));
  const bool is_graph = head.starts_with("graph") || head.starts_with("digraph");
  return is_graph && head.find(':') == std::string::npos && text.find('{') != std::string_view::npos;
}

ImportedTopology import_dot(std::string_view text, const std::string& file, const ImportOptions& options) {
  refuse_deep_braces(text, file);
  return head_of(text).find("digraph") != std::string::npos ? import_dot_as<FileGraph>(text, file, options)
                                                            : import_dot_as<UndirectedFileGraph>(text, file, options);
}

namespace {

// Refuses everything that Boost's reader accepts silently, or refuses without saying where.
void check_graphml(std::string_view text, const std::string& file, const pugi::xml_document& document) {
  Diagnostics problems;
  const auto problem = [&](const pugi::xml_node& at, std::string message) {
    problems.add({file, line_of(text, at), 0, at.name(), std::move(message)});
  };
  std::set<std::string_view> keys, nodes;
  static const std::set<std::string_view> kTypes{"", "boolean", "int", "long", "float", "double", "string"};
  for (const auto& one : document.select_nodes("//key")) {
    keys.insert(one.node().attribute("id").value());
    const std::string type = one.node().attribute("attr.type").value();
    if (!kTypes.contains(type)) {
      problem(one.node(), fmt::format("attr.type: expected boolean, int, long, float, double or string, found '{}'",
                                      shortened(type)));
    }
  }
  for (const auto& one : document.select_nodes("//node")) {
    const std::string id = one.node().attribute("id").value();
    if (id.empty()) problem(one.node(), "has no id");
    if (!nodes.insert(one.node().attribute("id").value()).second) problem(one.node(), "a second node '" + id + "'");
  }
  for (const auto& one : document.select_nodes("//edge")) {
    for (const char* end : {"source", "target"}) {
      const std::string id = one.node().attribute(end).value();
      if (!nodes.contains(id)) problem(one.node(), fmt::format("{}: no node '{}'", end, shortened(id)));
    }
  }
  for (const auto& one : document.select_nodes("//data")) {
    const std::string key = one.node().attribute("key").value();
    if (!keys.contains(key)) problem(one.node(), fmt::format("no key '{}' is declared", shortened(key)));
  }
  for (const auto& one : document.select_nodes("//hyperedge | //port")) problem(one.node(), "is not read");
  problems.throw_if_any();
}

// Boost accepts only values of the type that their key states, and only edges of the graph's kind. Here all values are
// read as text, and `duplex` says what an edge carries.
std::string text_for_boost(pugi::xml_document& document) {
  for (const auto& one : document.select_nodes("//key")) {
    pugi::xml_node key = one.node();
    key.remove_attribute("attr.type");
    key.append_attribute("attr.type") = "string";
  }
  for (const auto& one : document.select_nodes("//edge")) one.node().remove_attribute("directed");
  std::ostringstream text;
  document.save(text, "", pugi::format_raw);
  return text.str();
}

template <typename Graph>
ImportedTopology import_graphml_as(std::string_view text, pugi::xml_document& document, const std::string& file,
                                   const ImportOptions& options) {
  Graph graph;
  const OtherProperties others;
  auto properties = properties_of(graph, others);
  std::istringstream stream{text_for_boost(document)};
  try {
    boost::read_graphml(stream, graph, properties);
  } catch (const std::exception& error) {
    refuse_graph(file, std::string("not GraphML: ") + error.what());
  }
  // Boost gives no ids; vertices come in the order of the elements.
  std::size_t number = 0;
  for (const auto& one : document.select_nodes("//node")) {
    if (number == boost::num_vertices(graph)) break;
    graph[number].id = one.node().attribute("id").value();
    graph[number++].line = line_of(text, one.node());
  }
  ImportedTopology imported = build_described(Description(file).of(graph), file, options, stem_of(file));
  note_others(others, file, imported);
  return imported;
}

}  // namespace

ImportedTopology import_graphml(std::string_view text, const std::string& file, const ImportOptions& options) {
  pugi::xml_document document;
  check_xml(text, file, document);
  check_graphml(text, file, document);
  const pugi::xml_node graph = document.select_node("//graph").node();
  return std::string_view(graph.attribute("edgedefault").value()) == "undirected"
             ? import_graphml_as<UndirectedFileGraph>(text, document, file, options)
             : import_graphml_as<FileGraph>(text, document, file, options);
}

}  // namespace tandem
