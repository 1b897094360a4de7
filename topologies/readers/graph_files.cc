#include "topologies/readers/graph_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "topologies/base/units.h"
#include "topologies/readers/described_graph.h"
#include "topologies/readers/graphs/attributed_graph.h"

namespace tandem {
namespace {

// Adds a note for each attribute of nodes and edges that nothing here reads, but those of drawings.
class OtherAttributes {
 public:
  void look_at(const Attributes& attributes) {
    for (const auto& [name, value] : attributes) {
      if (!is_known(name)) names_.insert(name);
    }
  }
  void note(const std::string& file, ImportedTopology& imported) const {
    for (const std::string& name : names_) {
      imported.notes.push_back(fmt::format("{}: attribute '{}' has no effect here", file, shortened(name)));
    }
  }

 private:
  static bool is_known(const std::string& name) {
    static const std::set<std::string_view> kRead{"name", "kind",      "device", "architecture", "worker",
                                                  "port", "transport", "bw",     "lat",          "duplex"};
    static const std::set<std::string_view> kDrawn{
        "arrowhead", "arrowsize",  "arrowtail", "bb",        "bgcolor",     "center",    "class",    "color",
        "comment",   "constraint", "dir",       "fillcolor", "fixedsize",   "fontcolor", "fontname", "fontsize",
        "group",     "headlabel",  "headport",  "height",    "href",        "id",        "label",    "labelfontsize",
        "labelloc",  "layout",     "len",       "lhead",     "ltail",       "margin",    "minlen",   "nodesep",
        "nojustify", "ordering",   "overlap",   "penwidth",  "peripheries", "pos",       "rank",     "rankdir",
        "ranksep",   "ratio",      "shape",     "sides",     "size",        "splines",   "style",    "taillabel",
        "tailport",  "tooltip",    "url",       "URL",       "width",       "x",         "xlabel",   "y",
        "z"};
    return kRead.contains(name) || kDrawn.contains(name);
  }

  std::set<std::string> names_{};
};

// Reads the attributes of docs/topology.md.
class Description {
 public:
  explicit Description(const std::string& file) : file_(file) {}

  DescribedGraph of(const AttributedGraph& graph) {
    DescribedGraph described;
    for (const AttributedGraph::Vertex& vertex : graph.nodes) described.nodes.push_back(node(vertex));
    for (const AttributedGraph::Edge& edge : graph.edges) {
      const std::string ends = described.nodes[edge.from].name + " - " + described.nodes[edge.to].name;
      described.links.push_back(link(edge, ends));
    }
    problems_.throw_if_any();
    merge_pairs(described);
    return described;
  }

 private:
  void problem(const FilePlace& place, std::string message) {
    if (++count_ <= 100) problems_.add(problem_at(file_, place, std::move(message)));
  }

  std::optional<double> quantity(const PlacedText& stated, Dimension dimension, const std::string& what,
                                 const char* example) {
    if (stated.text.empty()) return std::nullopt;
    const auto value = parse_quantity(stated.text, dimension);
    if (!value) {
      problem(stated.place, fmt::format("{}: expected {}, found '{}'", what, example, shortened(stated.text)));
    } else if (const std::string wrong = quantity_problem(*value, dimension, shortened(stated.text), true);
               !wrong.empty()) {
      problem(stated.place, fmt::format("{}: {}", what, wrong));
    }
    return value;
  }

  DescribedLink link(const AttributedGraph::Edge& edge, const std::string& ends) {
    DescribedLink made;
    made.from = edge.from;
    made.to = edge.to;
    made.place = edge.place;
    made.kind = attribute_of(edge.attributes, "kind").text;
    made.bytes_per_s =
        quantity(attribute_of(edge.attributes, "bw"), Dimension::bytes_per_second, ends + ": bw", "50GB/s");
    made.latency_s = quantity(attribute_of(edge.attributes, "lat"), Dimension::seconds, ends + ": lat", "1us");
    const PlacedText& duplex = attribute_of(edge.attributes, "duplex");
    if (duplex.text == "half") made.direction = Direction::half_duplex;
    if (duplex.text == "one_way") made.direction = Direction::one_way;
    if (!duplex.text.empty() && duplex.text != "full" && made.direction == Direction::duplex) {
      problem(duplex.place, ends + ": duplex must be full, half or one_way, found '" + duplex.text + "'");
    }
    return made;
  }

  DescribedNode node(const AttributedGraph::Vertex& vertex) {
    const auto text = [&](std::string_view name) { return attribute_of(vertex.attributes, name).text; };
    DescribedNode made;
    made.name = text("name").empty() ? vertex.id : text("name");
    made.kind = text("kind");
    made.place = vertex.place;
    made.device = text("device");
    made.architecture = text("architecture");
    made.transport = text("transport");
    made.port_bytes_per_s =
        quantity(attribute_of(vertex.attributes, "port"), Dimension::bytes_per_second, made.name + ": port", "50GB/s");
    made.worker = worker(attribute_of(vertex.attributes, "worker"), made.name);
    return made;
  }

  std::optional<int> worker(const PlacedText& stated, const std::string& name) {
    if (stated.text.empty()) return std::nullopt;
    int worker = 0;
    const char* const end = stated.text.data() + stated.text.size();
    const auto result = std::from_chars(stated.text.data(), end, worker);
    if (result.ec == std::errc{} && result.ptr == end && worker >= kNoWorker && worker <= 1 << 24) return worker;
    problem(stated.place, name + ": worker: expected a number from 0, or -1, found '" + stated.text + "'");
    return std::nullopt;
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

ImportedTopology import_graph(const AttributedGraph& graph, const std::string& file, const ImportOptions& options) {
  ImportedTopology imported = build_described(Description(file).of(graph), file, options, stem_of(file));
  OtherAttributes others;
  for (const AttributedGraph::Vertex& vertex : graph.nodes) others.look_at(vertex.attributes);
  for (const AttributedGraph::Edge& edge : graph.edges) others.look_at(edge.attributes);
  others.note(file, imported);
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
  return import_graph(parse_dot(text, file), file, options);
}

ImportedTopology import_graphml(std::string_view text, const std::string& file, const ImportOptions& options) {
  return import_graph(parse_graphml(text, file), file, options);
}

}  // namespace tandem
