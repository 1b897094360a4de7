// Graphs of nodes and edges with named attributes, as DOT and GraphML describe them, each with its place in the file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/error.h"

namespace tandem {

struct PlacedText {
  std::string text{};
  FilePlace place{};
};
using Attributes = std::map<std::string, PlacedText, std::less<>>;

// Returns an attribute, or an empty text.
const PlacedText& attribute_of(const Attributes& attributes, std::string_view name);

struct AttributedGraph {
  struct Vertex {
    std::string id{};
    Attributes attributes{};
    FilePlace place{};
  };
  struct Edge {
    std::size_t from = 0, to = 0;
    Attributes attributes{};
    FilePlace place{};
  };
  std::vector<Vertex> nodes{};  // in the order of the file
  std::vector<Edge> edges{};    // likewise
};

// Reads a graph in Graphviz' language. Throws InputError where the text stops being one.
AttributedGraph parse_dot(std::string_view text, const std::string& file);

// Reads the first graph of a GraphML file. Throws InputError with everything that is wrong.
AttributedGraph parse_graphml(std::string_view text, const std::string& file);

}  // namespace tandem
