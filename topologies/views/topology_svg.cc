#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "topologies/base/shown.h"
#include "topologies/base/utf8.h"
#include "topologies/views/topology_text.h"

namespace tandem {
namespace {

constexpr int kColumn = 120, kWidth = 104, kHeight = 44, kMargin = 16;
constexpr int kGap = 40;  // between two rows, at least

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

struct Point {
  int x = 0, y = 0;
};

struct NodePlace {
  int row = 0;
  int first = 0, last = 0;  // columns that belong to the node and to what hangs below it
};

// Processors, the levels of PCIe switches below them, the GPUs and NICs that hang there, and NVSwitches, row by row.
// Every GPU and NIC has a column of its own, and a switch is above the middle of what hangs below it, so that no line
// to what hangs below leads through anything else.
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
      neighbours_[link.from].emplace_back(link.to, link.model->kind);
      neighbours_[link.to].emplace_back(link.from, link.model->kind);
    }
  }

  std::string draw() {
    place_all();
    find_gaps();
    int bottom = 0;
    for (const NodeIndex node : nodes_) {
      const int gap = gap_below_[static_cast<std::size_t>(places_.at(node).row)] - kGap;
      bottom = std::max(bottom, center(node).y + kHeight / 2 + gap);
    }
    const int width = std::max(1, columns_) * kColumn + 2 * kMargin;
    const int height = bottom + kMargin;
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
  static bool is_leaf(NodeKind kind) { return kind == NodeKind::gpu || kind == NodeKind::nic; }
  static bool is_below_all(NodeKind kind) { return kind == NodeKind::nvswitch || kind == NodeKind::network_switch; }

  // --- Places ---

  void place_all() {
    for (const NodeKind roots : {NodeKind::cpu, NodeKind::pcie_switch, NodeKind::gpu, NodeKind::nic}) {
      for (const NodeIndex node : nodes_) {
        if (topology_.kind(node) == roots && !places_.contains(node)) place_tree(node, roots == NodeKind::cpu ? 0 : 1);
      }
    }
    for (const NodeIndex node : nodes_) {
      if (is_leaf(topology_.kind(node))) places_[node].row = levels_ + 1;
    }
    std::vector<NodeIndex> below;
    for (const NodeIndex node : nodes_) {
      if (is_below_all(topology_.kind(node))) below.push_back(node);
    }
    const int count = static_cast<int>(below.size());
    columns_ = std::max(columns_, count);
    for (int i = 0; i < count; ++i) {  // evenly below all columns
      const int column = (2 * i + 1) * columns_ / (2 * count);
      places_[below[static_cast<std::size_t>(i)]] = {levels_ + 2, column, column};
    }
  }

  struct Waiting {
    NodeIndex node;
    int row;
    bool is_done;  // with everything below it
  };

  void place_tree(NodeIndex root, int row) {
    std::vector<Waiting> waiting{{root, row, false}};
    while (!waiting.empty()) {
      const Waiting next = waiting.back();
      waiting.pop_back();
      if (next.is_done) {
        if (columns_ == places_[next.node].first) ++columns_;  // nothing hangs below it
        places_[next.node].last = columns_ - 1;
        continue;
      }
      if (!places_.try_emplace(next.node, NodePlace{next.row, columns_, columns_}).second) continue;
      if (topology_.kind(next.node) == NodeKind::pcie_switch) levels_ = std::max(levels_, next.row);
      waiting.push_back({next.node, next.row, true});
      if (is_leaf(topology_.kind(next.node))) continue;
      std::vector<NodeIndex> below;
      for (const auto& [other, kind] : neighbours_[next.node]) {
        if (hangs_below(other, kind)) below.push_back(other);
      }
      for (auto other = below.rbegin(); other != below.rend(); ++other) {
        waiting.push_back({*other, next.row + 1, false});
      }
    }
  }

  bool hangs_below(NodeIndex node, LinkKind kind) const {
    const bool is_way_down = kind == LinkKind::pcie || kind == LinkKind::c2c;
    return is_way_down && topology_.kind(node) != NodeKind::cpu && !is_below_all(topology_.kind(node));
  }

  // Lines between nodes of one row, other than neighbours, lead through the gap below it.
  void find_gaps() {
    gap_below_.assign(static_cast<std::size_t>(levels_) + 3, kGap);
    for (const Link& link : links_) {
      const NodePlace &from = places_.at(link.from), &to = places_.at(link.to);
      if (from.row != to.row) continue;
      int& gap = gap_below_[static_cast<std::size_t>(from.row)];
      gap = std::max(gap, depth_of(link) + kGap);
    }
  }

  // Returns how far a line between nodes of one row hangs down.
  int depth_of(const Link& link) const {
    const int columns = std::abs(center_x(link.from) - center_x(link.to)) / kColumn;
    return 10 + 6 * columns;
  }

  int center_x(NodeIndex node) const {
    const NodePlace& place = places_.at(node);
    return kMargin + (place.first + place.last + 1) * kColumn / 2;
  }

  Point center(NodeIndex node) const {
    int y = kMargin + kHeight / 2;
    for (int row = 0; row < places_.at(node).row; ++row) y += kHeight + gap_below_[static_cast<std::size_t>(row)];
    return {center_x(node), y};
  }

  // --- Lines ---

  bool is_free(int x, int above, int below) const {
    return std::ranges::none_of(nodes_, [&](NodeIndex node) {
      const int row = places_.at(node).row;
      return row > above && row < below && std::abs(center_x(node) - x) <= kWidth / 2 + 1;
    });
  }

  // Returns where a line may pass the rows between two, as near to `x` as can be: between columns, if not there.
  int way_past(int x, int above, int below) const {
    int best = kMargin / 2;  // beside everything
    for (int candidate : {x, x - kColumn / 2, x + kColumn / 2}) {
      if (is_free(candidate, above, below)) return candidate;
    }
    for (int column = 0; column <= columns_; ++column) {
      const int between = kMargin + column * kColumn;
      if (std::abs(between - x) < std::abs(best - x) && is_free(between, above, below)) best = between;
    }
    return best;
  }

  std::string way(const Link& link) {
    const bool is_down = places_.at(link.from).row <= places_.at(link.to).row;
    const NodeIndex upper = is_down ? link.from : link.to, lower = is_down ? link.to : link.from;
    Point from = center(upper), to = center(lower);
    const int above = places_.at(upper).row, below = places_.at(lower).row;
    const int shift = 5 * shown_[std::minmax(upper, lower)]++;  // links between the same nodes, side by side
    from.x += shift;
    to.x += shift;
    if (above == below) {
      from.y += kHeight / 2;
      to.y += kHeight / 2;
      const int depth = 2 * depth_of(link);  // a curve goes half the way to its third point
      return fmt::format("M{} {} Q{} {} {} {}", from.x, from.y, (from.x + to.x) / 2, from.y + depth, to.x, to.y);
    }
    from.y += kHeight / 2;
    to.y -= kHeight / 2;
    if (below == above + 1) return fmt::format("M{} {} L{} {}", from.x, from.y, to.x, to.y);
    const int x = way_past(to.x, above, below);
    const int begin = from.y + gap_below_[static_cast<std::size_t>(above)];
    const int end = to.y - gap_below_[static_cast<std::size_t>(below - 1)];
    return fmt::format("M{} {} L{} {} L{} {} L{} {}", from.x, from.y, x, begin, x, end, to.x, to.y);
  }

  std::string line(const Link& link) {
    return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\"><title>{} - {}: {} {:.4g} GB/s</title></path>\n",
                       way(link), line_of(link.model->kind), xml_name(topology_.node(link.from).name),
                       xml_name(topology_.node(link.to).name), name_of(link.model->kind),
                       link.model->bandwidth_bytes_per_s.value / 1e9);
  }

  std::string box(NodeIndex index) const {
    const auto [x, y] = center(index);
    const Node node = topology_.node(index);
    std::string below(name_of(node.kind));
    if (node.port) below = fmt::format("{:.4g} GB/s", node.port->bandwidth_bytes_per_s.value / 1e9);
    const std::string model = node.device ? node.device->name : below;
    return fmt::format(
        "<g><title>{0}: {1}</title><rect x=\"{2}\" y=\"{3}\" width=\"{4}\" height=\"{5}\" rx=\"5\" fill=\"{6}\" "
        "stroke=\"#666\"/><text x=\"{7}\" y=\"{8}\" text-anchor=\"middle\">{0}</text><text x=\"{7}\" y=\"{9}\" "
        "text-anchor=\"middle\" fill=\"#555\" font-size=\"9\">{10}</text></g>\n",
        xml_name(node.name), xml_name(model), x - kWidth / 2, y - kHeight / 2, kWidth, kHeight, color_of(node.kind), x,
        y - 3, y + 12, xml_name(shortened_model(model)));
  }

  const Topology& topology_;
  std::vector<NodeIndex> nodes_{};
  std::vector<Link> links_{};
  std::map<NodeIndex, std::vector<std::pair<NodeIndex, LinkKind>>> neighbours_{};
  std::map<NodeIndex, NodePlace> places_{};
  int columns_ = 0;
  int levels_ = 0;                                          // rows of PCIe switches
  std::vector<int> gap_below_{};                            // each row
  std::map<std::pair<NodeIndex, NodeIndex>, int> shown_{};  // links between two nodes
};

}  // namespace

std::string topology_svg(const Topology& topology) {
  return Picture(topology).draw();
}

}  // namespace tandem
