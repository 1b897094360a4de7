// GraphML: graphml.graphdrawing.org. Boost.Graph reads it, too, but keeps no place.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <pugixml.hpp>

#include "topologies/base/strict_yaml.h"
#include "topologies/base/xml_checks.h"
#include "topologies/readers/graphs/attributed_graph.h"

namespace tandem {
namespace {

using GraphElement = pugi::xml_node;

class GraphmlReader {
 public:
  GraphmlReader(std::string_view text, const std::string& file) : places_(text), file_(file) {
    check_xml(text, file, document_);
  }

  AttributedGraph read() {
    for (const auto& one : document_.select_nodes("//key")) read_key(one.node());
    const GraphElement graph = document_.select_node("//graph").node();
    if (const GraphElement second = graph.next_sibling("graph")) problem(second, "a second graph; one is read");
    for (const auto& one : graph.select_nodes(".//node")) read_node(one.node());
    for (const auto& one : graph.select_nodes(".//edge")) read_edge(one.node());
    for (const auto& one : document_.select_nodes("//hyperedge | //port")) problem(one.node(), "is not read");
    problems_.throw_if_any();
    return std::move(graph_);
  }

 private:
  struct Key {
    std::string name, of;  // of nodes, edges, or all
    PlacedText value;      // where an element has none
  };

  void problem(const GraphElement& element, std::string message, std::string_view attribute = "") {
    problems_.add(problem_at(file_, places_.of(element, attribute), std::move(message), element.name()));
  }

  void read_key(const GraphElement& element) {
    constexpr std::array<std::string_view, 7> kTypes{"", "boolean", "int", "long", "float", "double", "string"};
    const std::string type = element.attribute("attr.type").value();
    if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) {
      problem(
          element,
          fmt::format("attr.type: expected boolean, int, long, float, double or string, found '{}'", shortened(type)),
          "attr.type");
    }
    const GraphElement otherwise = element.child("default");
    keys_[element.attribute("id").value()] = {.name = element.attribute("attr.name").value(),
                                              .of = element.attribute("for").value(),
                                              .value = {value_of(otherwise), places_.of(element)}};
  }

  // Tools that indent their files put blanks around a value.
  static std::string value_of(const GraphElement& element) {
    constexpr const char* kBlanks = " \t\r\n";
    const std::string_view text = element.child_value();
    const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
    return std::string(text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin));
  }

  // Returns the attributes of a node or edge. Keys without attr.name are those of a drawing, as yEd writes them.
  Attributes attributes_of(const GraphElement& element) {
    Attributes attributes;
    for (const auto& [id, key] : keys_) {
      const bool is_for_it = key.of.empty() || key.of == "all" || key.of == element.name();
      if (is_for_it && !key.name.empty() && !key.value.text.empty()) attributes[key.name] = key.value;
    }
    for (const GraphElement& data : element.children("data")) {
      const std::string id = data.attribute("key").value();
      const auto key = keys_.find(id);
      if (key == keys_.end()) {
        problem(data, fmt::format("no key '{}' is declared", shortened(id)), "key");
      } else if (!key->second.name.empty()) {
        attributes[key->second.name] = {value_of(data), places_.of(data)};
      }
    }
    return attributes;
  }

  void read_node(const GraphElement& element) {
    const std::string id = element.attribute("id").value();
    if (id.empty()) return problem(element, "has no id");
    if (!by_id_.emplace(id, graph_.nodes.size()).second) return problem(element, "a second node '" + id + "'", "id");
    graph_.nodes.push_back({id, attributes_of(element), places_.of(element)});
  }

  void read_edge(const GraphElement& element) {
    AttributedGraph::Edge edge{.attributes = attributes_of(element), .place = places_.of(element)};
    for (const bool is_source : {true, false}) {
      const char* const end = is_source ? "source" : "target";
      const std::string id = element.attribute(end).value();
      const auto node = by_id_.find(id);
      if (node == by_id_.end()) return problem(element, fmt::format("{}: no node '{}'", end, shortened(id)), end);
      (is_source ? edge.from : edge.to) = node->second;
    }
    graph_.edges.push_back(std::move(edge));
  }

  XmlPlaces places_;
  const std::string& file_;
  pugi::xml_document document_{};
  Diagnostics problems_{};
  std::map<std::string, Key> keys_{};
  std::map<std::string, std::size_t> by_id_{};
  AttributedGraph graph_{};
};

}  // namespace

AttributedGraph parse_graphml(std::string_view text, const std::string& file) {
  return GraphmlReader(text, file).read();
}

}  // namespace tandem
