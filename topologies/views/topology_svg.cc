#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topologies/base/shown.h"
#include "topologies/base/utf8.h"
#include "topologies/views/topology_text.h"

namespace tandem {
namespace {

constexpr int kColumn = 120, kRow = 84, kWidth = 104, kHeight = 44, kMargin = 16;

constexpr std::size_t kMostModel = 20;  // characters of a name below a node

std::string shortened_model(const std::string& model) {
  if (model.size() <= kMostModel) return model;
  std::size_t size = 0, next = 0;
  while (next < kMostModel) {
    size = next;
    next += std::max<std::size_t>(1, utf8_size(std::string_view(model).substr(size)));
  }
  return model.substr(0, size) + ".";
}

const char* color_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::cpu:
      return "#dbe7f5";
    case NodeKind::gpu:
      return "#d9f0d3";
    case NodeKind::nic:
      return "#fdebc8";
    default:
      return "#eeeeee";
  }
}

const char* line_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "#3a8f3a";
    case LinkKind::c2c:
      return "#8f3a8f";
    case LinkKind::cpu_interconnect:
      return "#3a5f8f";
    default:
      return "#888888";
  }
}

struct Place {
  int column = 0, row = 0;
};

// The rows are processors, PCIe switches, NICs, GPUs, and NVSwitches. Devices are drawn below the processor that they
// hang under, in the order of a walk down its tree.
class Picture {
 public:
  explicit Picture(const Topology& topology) : topology_(topology) {
    for (NodeIndex node = 0; node < topology.node_count(); ++node) {
      if (topology.worker(node) == 0) nodes_.push_back(node);
    }
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const Link link = topology.link(index);
      if (topology.worker(link.from) != 0 || topology.worker(link.to) != 0) continue;
      links_.push_back(link);
    }
  }

  std::string draw() {
    for (const NodeIndex node : nodes_) {
      if (topology_.kind(node) == NodeKind::cpu) walk(node);
    }
    for (const NodeIndex node : nodes_) place(node);
    int columns = 1;
    for (const auto& [row, column] : next_column_) columns = std::max(columns, column);
    const int width = columns * kColumn + 2 * kMargin;
    const int height = 5 * kRow + 2 * kMargin;
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"white\"/>\n",
        width, height, xml_name(topology_.name()));
    for (const Link& link : links_) text += line(link);
    for (const NodeIndex node : nodes_) text += box(node);
    return text + "</svg>\n";
  }

 private:
  static int row_of(NodeKind kind) {
    switch (kind) {
      case NodeKind::cpu:
        return 0;
      case NodeKind::pcie_switch:
        return 1;
      case NodeKind::nic:
        return 2;
      case NodeKind::gpu:
        return 3;
      default:
        return 4;
    }
  }

  void place(NodeIndex node) {
    if (places_.contains(node)) return;
    const int row = row_of(topology_.kind(node));
    places_[node] = {next_column_[row]++, row};
  }

  void walk(NodeIndex root) {
    std::vector<NodeIndex> waiting{root};
    while (!waiting.empty()) {
      const NodeIndex node = waiting.back();
      waiting.pop_back();
      if (places_.contains(node)) continue;
      place(node);
      std::vector<NodeIndex> below;
      for (const Link& link : links_) {
        if (link.model->kind != LinkKind::pcie || (link.from != node && link.to != node)) continue;
        const NodeIndex other = link.from == node ? link.to : link.from;
        if (topology_.kind(other) != NodeKind::cpu) below.push_back(other);
      }
      waiting.insert(waiting.end(), below.rbegin(), below.rend());
    }
  }

  static int x(const Place& place) { return kMargin + place.column * kColumn + kColumn / 2; }
  static int y(const Place& place) { return kMargin + place.row * kRow + kRow / 2; }

  std::string line(const Link& link) const {
    const Place& from = places_.at(link.from);
    const Place& to = places_.at(link.to);
    const int bend = from.row == to.row ? kHeight / 2 + 8 + 4 * std::abs(from.column - to.column) : 0;
    return fmt::format(
        "<path d=\"M{} {} Q{} {} {} {}\" fill=\"none\" stroke=\"{}\"><title>{} - {}: {} {:.4g} GB/s</title></path>\n",
        x(from), y(from), (x(from) + x(to)) / 2, (y(from) + y(to)) / 2 + bend, x(to), y(to), line_of(link.model->kind),
        xml_name(topology_.node(link.from).name), xml_name(topology_.node(link.to).name), name_of(link.model->kind),
        link.model->bandwidth_bytes_per_s.value / 1e9);
  }

  std::string box(NodeIndex index) const {
    const Place& place = places_.at(index);
    const Node node = topology_.node(index);
    std::string below(name_of(node.kind));
    if (node.port) below = fmt::format("{:.4g} GB/s", node.port->bandwidth_bytes_per_s.value / 1e9);
    const std::string model = node.device ? node.device->name : below;
    return fmt::format(
        "<g><title>{0}: {1}</title><rect x=\"{2}\" y=\"{3}\" width=\"{4}\" height=\"{5}\" rx=\"5\" fill=\"{6}\" "
        "stroke=\"#666\"/><text x=\"{7}\" y=\"{8}\" text-anchor=\"middle\">{0}</text><text x=\"{7}\" y=\"{9}\" "
        "text-anchor=\"middle\" fill=\"#555\" font-size=\"9\">{10}</text></g>\n",
        xml_name(node.name), xml_name(model), x(place) - kWidth / 2, y(place) - kHeight / 2, kWidth, kHeight,
        color_of(node.kind), x(place), y(place) - 3, y(place) + 12, xml_name(shortened_model(model)));
  }

  const Topology& topology_;
  std::vector<NodeIndex> nodes_{};
  std::vector<Link> links_{};
  std::map<NodeIndex, Place> places_{};
  std::map<int, int> next_column_{};
};

}  // namespace

std::string topology_svg(const Topology& topology) {
  return Picture(topology).draw();
}

}  // namespace tandem
