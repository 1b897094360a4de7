#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/plot.h"
#include "topologies/topology.h"

namespace tandem::pages {
namespace {

constexpr double kRowHeight = 70, kNodeHeight = 20;
constexpr std::size_t kMostNodes = 80;

// The rows from below: devices and what joins them, then the parts that lead out of a machine. A network's switches
// come above, ordered by their distance from the machines.
constexpr NodeKind kRows[] = {NodeKind::nvswitch, NodeKind::gpu, NodeKind::pcie_switch,
                              NodeKind::cpu,      NodeKind::nic, NodeKind::network_switch};
int row_of_kind(const std::string& kind) {
  const auto found =
      std::find_if(std::begin(kRows), std::end(kRows), [&](NodeKind row) { return name_of(row) == kind; });
  return static_cast<int>(std::min(found, std::prev(std::end(kRows))) - std::begin(kRows));
}

struct MapNode {
  std::string kind;
  int row = 0;
  double x = 0, y = 0, width = 0;
};

struct MapLine {
  std::string from, to, kind;
  double use = 0;
};

// Returns the machine of a node, such as "w0" for "w0.gpu3"; empty if the node belongs to the network.
std::string machine_of(const std::string& node) {
  const std::size_t point = node.find('.');
  return point == std::string::npos ? "" : node.substr(0, point);
}

// Returns the machines with the most used links, each as a whole, as long as their nodes fit.
std::set<std::string> machines_that_fit(const LinkPicture& picture) {
  std::map<std::string, std::set<std::string>> nodes;
  std::vector<std::string> order;
  for (const LinkUse& link : picture.links) {
    for (const std::string& node : {link.from, link.to}) {
      auto& of_machine = nodes[machine_of(node)];
      if (of_machine.empty()) order.push_back(machine_of(node));
      of_machine.insert(node);
    }
  }
  std::set<std::string> machines = {""};
  std::size_t count = nodes[""].size();
  for (const std::string& machine : order) {
    if (machine.empty() || count + nodes[machine].size() > kMostNodes) continue;
    count += nodes[machine].size();
    machines.insert(machine);
  }
  return machines;
}

// Places the nodes that fit, and the lines between them.
class Layout {
 public:
  explicit Layout(const LinkPicture& picture) : machines_(machines_that_fit(picture)) {
    std::set<std::pair<std::string, std::string>> places;
    for (const LinkUse& link : picture.links) {
      const auto ends = std::minmax(link.from, link.to);
      if (!machines_.contains(machine_of(link.from)) || !machines_.contains(machine_of(link.to))) continue;
      if (!places.insert(ends).second) continue;  // the other direction is used less
      if (!add_node(link.from, link.from_kind) || !add_node(link.to, link.to_kind)) continue;
      lines_.push_back({link.from, link.to, link.kind, picture.use_of(link)});
    }
    raise_switches();
    place_nodes();
  }

  const std::map<std::string, MapNode>& nodes() const { return nodes_; }
  const std::vector<MapLine>& lines() const { return lines_; }
  double height() const { return height_; }

 private:
  bool add_node(const std::string& name, const std::string& kind) {
    if (nodes_.contains(name)) return true;
    if (nodes_.size() == kMostNodes) return false;  // even the network alone may be too large
    nodes_[name] = {.kind = kind, .row = row_of_kind(kind)};
    order_.push_back(name);
    return true;
  }

  // Places a switch of a network a row above the lowest neighbour that leads down.
  void raise_switches() {
    const int first = row_of_kind(std::string(name_of(NodeKind::network_switch)));
    std::set<std::string> placed;
    for (const auto& [name, node] : nodes_) {
      if (node.row < first) placed.insert(name);
    }
    for (int row = first; placed.size() < nodes_.size(); ++row) {
      std::set<std::string> reached;
      for (const MapLine& line : lines_) {
        for (const auto& [a, b] : {std::pair(line.from, line.to), std::pair(line.to, line.from)}) {
          if (placed.contains(a) && !placed.contains(b)) reached.insert(b);
        }
      }
      if (reached.empty()) return;
      for (const std::string& name : reached) nodes_[name].row = row;
      placed.merge(reached);
    }
  }

  void place_nodes() {
    std::sort(order_.begin(), order_.end(), [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;  // w0.gpu2 before w0.gpu10
    });
    std::map<int, std::vector<std::string>, std::greater<>> rows;
    for (const std::string& name : order_) rows[nodes_[name].row].push_back(name);
    double y = 8;
    for (const auto& [row, names] : rows) {
      const double room = kPageWidth / static_cast<double>(names.size());
      for (std::size_t i = 0; i < names.size(); ++i) {
        MapNode& node = nodes_[names[i]];
        node.width = std::min(120.0, room - 12);
        node.x = room * (static_cast<double>(i) + 0.5);
        node.y = y;
      }
      y += kRowHeight;
    }
    height_ = y - kRowHeight + kNodeHeight + 8;
  }

  std::set<std::string> machines_;
  std::map<std::string, MapNode> nodes_;
  std::vector<std::string> order_;
  std::vector<MapLine> lines_;
  double height_ = 0;
};

// Draws a line of this width as a polygon, which can have a tip.
void draw_line(Svg& svg, const MapNode& from, const MapNode& to, double width, bool is_hottest, std::string_view tip) {
  const double x1 = from.x, y1 = from.y + kNodeHeight / 2, x2 = to.x, y2 = to.y + kNodeHeight / 2;
  const double length = std::max(1.0, std::hypot(x2 - x1, y2 - y1));
  const double dx = (y2 - y1) / length * width / 2, dy = (x1 - x2) / length * width / 2;
  svg.polygon({{x1 + dx, y1 + dy}, {x2 + dx, y2 + dy}, {x2 - dx, y2 - dy}, {x1 - dx, y1 - dy}},
              is_hottest ? "hot" : "wire", tip);
}

}  // namespace

std::string link_map(std::string_view title, const LinkPicture& picture) {
  const Layout layout(picture);
  Svg svg(kPageWidth, layout.height(), title);
  const double most = layout.lines().empty() ? 0 : layout.lines().front().use;
  for (auto line = layout.lines().rbegin(); line != layout.lines().rend(); ++line) {
    draw_line(svg, layout.nodes().at(line->from), layout.nodes().at(line->to), most > 0 ? 1 + 7 * line->use / most : 1,
              std::next(line) == layout.lines().rend(),
              fmt::format("{} - {} ({}): {} used", line->from, line->to, line->kind, percent_text(line->use)));
  }
  for (const auto& [name, node] : layout.nodes()) {
    svg.rect(node.x - node.width / 2, node.y, node.width, kNodeHeight, "node", name);
    const auto letters = static_cast<std::size_t>(node.width / kCharacter);
    const std::string label = name.size() <= letters ? name : name.substr(name.find('.') + 1);
    if (label.size() <= letters) svg.text(node.x, node.y + 14, label, "middle", "small");
  }
  return figure("links", std::move(svg).finish());
}

}  // namespace tandem::pages
