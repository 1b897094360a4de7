#include "topologies/readers/simgrid_platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <pugixml.hpp>

#include "topologies/readers/described_graph.h"
#include "topologies/readers/fabric_description.h"
#include "topologies/readers/xml_checks.h"

namespace tandem {
namespace {

using XmlElement = pugi::xml_node;

// "450GBps", "10kBps", "1Gbps", "1.3us", "900Tf": SimGrid's units.
std::optional<double> simgrid_quantity(std::string_view text, std::string_view base) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || !(value >= 0) || !std::isfinite(value)) return std::nullopt;
  std::string_view unit(result.ptr, static_cast<std::size_t>(text.data() + text.size() - result.ptr));
  if (unit.empty()) return value;
  if (base == "s") {
    static const std::map<std::string_view, double> kTimes{{"w", 604800}, {"d", 86400}, {"h", 3600},
                                                           {"m", 60},     {"s", 1},     {"ms", 1e-3},
                                                           {"us", 1e-6},  {"ns", 1e-9}, {"ps", 1e-12}};
    const auto found = kTimes.find(unit);
    return found == kTimes.end() ? std::nullopt : std::optional(value * found->second);
  }
  double factor = 1;
  if (base == "Bps" && unit.ends_with("bps")) {
    factor = 1.0 / 8;
  } else if (!unit.ends_with(base)) {
    return std::nullopt;
  }
  unit.remove_suffix(base.size());
  const bool is_binary = unit.size() == 2 && unit[1] == 'i';
  if (unit.size() > 1 && !is_binary) return std::nullopt;
  constexpr std::string_view kPrefixes = "kMGTPE";
  const auto power = unit.empty() ? std::string_view::npos : kPrefixes.find(unit[0] == 'K' ? 'k' : unit[0]);
  if (!unit.empty() && power == std::string_view::npos) return std::nullopt;
  for (std::size_t i = 0; !unit.empty() && i <= power; ++i) factor *= is_binary ? 1024 : 1000;
  return value * factor;
}

struct PlatformLink {
  std::string id{}, kind{};
  double bytes_per_s = 0, latency_s = 0;
  Direction direction = Direction::duplex;
  int line = 0;
  bool is_used = false;
};

// Routes list links and say nothing of what is between them. Two links that follow each other meet in a point; points
// are merged as routes are read, and those that are no host become switches.
class Points {
 public:
  std::size_t add(bool is_named) {
    parents_.push_back(parents_.size());
    named_.push_back(is_named);
    return parents_.size() - 1;
  }
  std::size_t root(std::size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  // False when both are hosts.
  bool merge(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    if (a == b) return true;
    if (named_[a] && named_[b]) return false;
    if (named_[b]) std::swap(a, b);
    parents_[b] = a;
    return true;
  }
  bool is_named(std::size_t i) { return named_[root(i)]; }

 private:
  std::vector<std::size_t> parents_{};
  std::vector<bool> named_{};
};

class PlatformReader {
 public:
  PlatformReader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    check_xml(text, file, document_);
  }

  DescribedGraph read() {
    const XmlElement platform = document_.child("platform");
    read_zone(platform);
    for (const XmlElement& route : routes_) read_route(route);
    if (graph_.nodes.empty() && problems_.empty()) problem(platform, "has no host");
    problems_.throw_if_any();
    add_links();
    problems_.throw_if_any();
    return std::move(graph_);
  }
  std::vector<std::string> notes() const { return notes_; }

 private:
  void problem(const XmlElement& element, std::string message) {
    if (++problem_count_ <= 100) problems_.add({file_, line_of(text_, element), 0, element.name(), std::move(message)});
  }
  void note(const XmlElement& element, const std::string& message) {
    if (std::find(noted_.begin(), noted_.end(), message) != noted_.end()) return;
    noted_.push_back(message);
    notes_.push_back(fmt::format("{}:{}: {}", file_, line_of(text_, element), message));
  }

  double number(const XmlElement& element, const char* attribute, std::string_view base, double otherwise) {
    const std::string_view stated = element.attribute(attribute).value();
    if (stated.empty()) return otherwise;
    const auto value = simgrid_quantity(stated.substr(0, stated.find(',')), base);
    if (!value)
      problem(element, fmt::format("{}: expected a number with a unit of {}, found '{}'", attribute, base, stated));
    return value.value_or(otherwise);
  }

  void read_zone(const XmlElement& zone) {
    for (const XmlElement& child : zone.children()) {
      const std::string_view name = child.name();
      if (name == "zone" || name == "AS") {
        read_zone(child);
      } else if (name == "host") {
        add_host(child, child.attribute("id").value());
      } else if (name == "router") {
        add_node(child, child.attribute("id").value(), "router");
      } else if (name == "link") {
        add_link(child, child.attribute("id").value());
      } else if (name == "cluster" || name == "cabinet") {
        read_cluster(child);
      } else if (name == "route" || name == "zoneRoute" || name == "ASroute") {
        routes_.push_back(child);
      } else if (name == "prop") {
        read_property(child);
      } else if (name != "config") {
        note(child, fmt::format("element '{}' is left out", name));
      }
    }
  }

  // "tandem.node.w0.pcie0" = "pcie_switch 0": what a router is.
  void read_property(const XmlElement& element) {
    const std::string_view id = element.attribute("id").value();
    constexpr std::string_view kNode = "tandem.node.";
    if (id.starts_with(kNode)) described_[std::string(id.substr(kNode.size()))] = element.attribute("value").value();
  }

  DescribedNode& add_node(const XmlElement& element, const std::string& id, const std::string& kind) {
    DescribedNode node;
    node.name = id;
    node.kind = kind;
    node.line = line_of(text_, element);
    if (id.empty()) problem(element, "has no id");
    if (!by_name_.emplace(id, graph_.nodes.size()).second) problem(element, "a second node '" + id + "'");
    if (const auto known = described_.find(id); known != described_.end()) describe(node, known->second);
    graph_.nodes.push_back(std::move(node));
    point_of_node_.push_back(points_.add(true));
    return graph_.nodes.back();
  }

  static void describe(DescribedNode& node, const std::string& words) {
    const std::size_t blank = words.find(' ');
    node.kind = words.substr(0, blank);
    if (blank == std::string::npos) return;
    const std::size_t second = words.find(' ', blank + 1);
    int worker = 0;
    const std::string_view number = std::string_view(words).substr(blank + 1, second - blank - 1);
    if (std::from_chars(number.data(), number.data() + number.size(), worker).ec == std::errc{}) node.worker = worker;
    double port = 0;
    if (second != std::string::npos &&
        std::from_chars(words.data() + second + 1, words.data() + words.size(), port).ec == std::errc{}) {
      node.port_bytes_per_s = port;
    }
  }

  void add_host(const XmlElement& element, const std::string& id) {
    DescribedNode& node = add_node(element, id, "host");
    node.flops_per_s = number(element, "speed", "f", 0);
    node.cores = std::clamp(element.attribute("core").as_int(1), 1, 1 << 16);
    for (const XmlElement& prop : element.children("prop")) {
      const std::string_view key = prop.attribute("id").value();
      const std::string value = prop.attribute("value").value();
      if (key == "tandem.kind") node.kind = value;
      if (key == "tandem.device") node.device = value;
      if (key == "tandem.architecture") node.architecture = value;
      if (key == "tandem.worker") node.worker = prop.attribute("value").as_int(0);
      if (node.worker && *node.worker < kNoWorker) problem(prop, "tandem.worker: expected a number from 0, or -1");
    }
    has_kinds_ = has_kinds_ || node.kind != "host";
    if (node.kind == "gpu" || node.kind == "cpu") node.flops_per_s = node.kind == "gpu" ? 0 : node.flops_per_s;
  }

  PlatformLink& add_link(const XmlElement& element, const std::string& id) {
    PlatformLink link;
    link.id = id;
    link.line = line_of(text_, element);
    link.bytes_per_s = number(element, "bandwidth", "Bps", 0);
    link.latency_s = number(element, "latency", "s", 0);
    const std::string_view policy = element.attribute("sharing_policy").value();
    if (policy.empty() || policy == "SHARED") link.direction = Direction::half_duplex;
    if (policy == "FATPIPE") note(element, "a FATPIPE limits every flow alone; read as one that flows share");
    if (!(link.bytes_per_s > 0)) problem(element, "link '" + id + "' needs a bandwidth greater than 0");
    for (const XmlElement& prop : element.children("prop")) {
      const std::string_view key = prop.attribute("id").value();
      if (key == "tandem.kind") link.kind = prop.attribute("value").value();
      if (key == "tandem.direction" && std::string_view(prop.attribute("value").value()) == "one_way") {
        link.direction = Direction::one_way;
      }
    }
    if (!by_link_.emplace(id, links_.size()).second) problem(element, "a second link '" + id + "'");
    const std::size_t ends = points_.add(false);
    points_.add(false);
    ends_.push_back(ends);
    links_.push_back(std::move(link));
    return links_.back();
  }

  void read_cluster(const XmlElement& element) {
    const std::string_view shape = element.attribute("topology").value();
    if (!shape.empty() && shape != "FLAT") {
      return problem(element,
                     fmt::format("a cluster of topology {} is not read; write `cluster:` with a fabric of kind "
                                 "torus, fat_tree or dragonfly in Tandem's own file",
                                 shape));
    }
    const std::string prefix = element.attribute("prefix").value(), suffix = element.attribute("suffix").value();
    std::string id = element.attribute("id").value();
    const auto names = hosts_of_list("[" + std::string(element.attribute("radical").value()) + "]");
    if (!names || names->size() > 100000)
      return problem(element, "radical: expected ranges such as 0-15, of at most 100,000 hosts");
    const double rate = number(element, "bw", "Bps", 0), latency = number(element, "lat", "s", 0);
    if (!(rate > 0)) return problem(element, "needs a bw greater than 0");
    const std::size_t middle = graph_.nodes.size();
    add_node(element, id.empty() ? "cluster" : id, "router");
    for (const std::string& name : *names) {
      const std::size_t host = graph_.nodes.size();
      DescribedNode& node = add_node(element, prefix + name + suffix, "host");
      node.flops_per_s = number(element, "speed", "f", 0);
      node.cores = std::clamp(element.attribute("core").as_int(1), 1, 1 << 16);
      DescribedLink link;
      link.from = host;
      link.to = middle;
      link.kind = "network";
      link.bytes_per_s = rate;
      link.latency_s = latency;
      link.line = line_of(text_, element);
      direct_.push_back(link);
    }
    if (*element.attribute("bb_bw").value() != '\0')
      note(element, "the backbone of a cluster is left out: its switch never blocks");
  }

  std::optional<std::size_t> end_of(const XmlElement& route, const char* gateway, const char* plain) {
    std::string name = route.attribute(gateway).value();
    if (name.empty()) name = route.attribute(plain).value();
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return point_of_node_[found->second];
    problem(route, fmt::format("no host or router '{}'", name));
    return std::nullopt;
  }

  void read_route(const XmlElement& route) {
    const auto from = end_of(route, "gw_src", "src");
    const auto to = end_of(route, "gw_dst", "dst");
    if (!from || !to || *from == *to) return;
    std::size_t here = *from;
    std::vector<std::size_t> chain;
    for (const XmlElement& hop : route.children("link_ctn")) {
      const auto known = by_link_.find(hop.attribute("id").value());
      if (known == by_link_.end()) return problem(hop, fmt::format("no link '{}'", hop.attribute("id").value()));
      chain.push_back(known->second);
    }
    for (const std::size_t link : chain) {
      const std::size_t head = ends_[link], tail = head + 1;
      links_[link].is_used = true;
      const bool is_tail = points_.root(tail) == points_.root(here) && points_.root(head) != points_.root(here);
      if (!is_tail && !points_.merge(head, here) && !points_.merge(tail, here)) return share(route, link);
      here = points_.root(is_tail || points_.root(head) != points_.root(here) ? head : tail);
    }
    if (!chain.empty() && !points_.merge(here, *to)) share(route, chain.back());
  }

  // A link between more than two hosts: what all of them are attached to.
  void share(const XmlElement& route, std::size_t link) {
    problem(route,
            fmt::format("link '{}' joins more than two hosts; give each host a link of its own", links_[link].id));
  }

  void add_links() {
    std::map<std::size_t, std::size_t> nodes;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) nodes[points_.root(point_of_node_[i])] = i;
    const auto node_at = [&](std::size_t point) {
      const auto [known, is_new] = nodes.emplace(points_.root(point), graph_.nodes.size());
      if (is_new) {
        DescribedNode node;
        node.name = fmt::format("switch{}", ++switches_);
        node.kind = "router";
        graph_.nodes.push_back(std::move(node));
      }
      return known->second;
    };
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const PlatformLink& read = links_[i];
      if (!read.is_used) continue;
      DescribedLink link;
      link.from = node_at(ends_[i]);
      link.to = node_at(ends_[i] + 1);
      link.kind = !read.kind.empty() ? read.kind : has_kinds_ ? "" : "network";
      link.bytes_per_s = read.bytes_per_s;
      link.latency_s = read.latency_s;
      link.direction = read.direction;
      link.line = read.line;
      if (link.from == link.to) {
        notes_.push_back(
            fmt::format("{}:{}: link '{}' is on every way through its switch; left out", file_, read.line, read.id));
        continue;
      }
      graph_.links.push_back(std::move(link));
    }
    graph_.links.insert(graph_.links.end(), direct_.begin(), direct_.end());
  }

  std::string_view text_;
  const std::string& file_;
  pugi::xml_document document_{};
  Diagnostics problems_{};
  int problem_count_ = 0;
  std::vector<std::string> notes_{}, noted_{};
  DescribedGraph graph_{};
  std::map<std::string, std::size_t> by_name_{}, by_link_{};
  std::map<std::string, std::string> described_{};
  std::vector<PlatformLink> links_{};
  std::vector<std::size_t> ends_{};  // of each link the first of its two points
  std::vector<DescribedLink> direct_{};
  std::vector<XmlElement> routes_{};
  Points points_{};
  std::vector<std::size_t> point_of_node_{};
  bool has_kinds_ = false;
  int switches_ = 0;
};

}  // namespace

ImportedTopology import_simgrid_platform(std::string_view text, const std::string& file, const ImportOptions& options) {
  PlatformReader reader(text, file);
  const DescribedGraph graph = reader.read();
  ImportedTopology imported = build_described(graph, file, options, std::filesystem::path(file).stem().string());
  const std::vector<std::string> notes = reader.notes();
  imported.notes.insert(imported.notes.begin(), notes.begin(), notes.end());
  return imported;
}

}  // namespace tandem
