#include "topologies/readers/simgrid_platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <pugixml.hpp>

#include "topologies/base/xml_checks.h"
#include "topologies/readers/fabric_description.h"
#include "topologies/readers/simgrid_routes.h"

namespace tandem {
namespace {

using XmlElement = pugi::xml_node;

constexpr std::size_t kMostNotes = 200;

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

Dimension dimension_of(std::string_view base) {
  if (base == "s") return Dimension::seconds;
  return base == "f" ? Dimension::flops_per_second : Dimension::bytes_per_second;
}

class PlatformReader {
 public:
  PlatformReader(std::string_view text, const std::string& file) : places_(text), file_(file) {
    check_xml(text, file, document_);
  }

  Platform read() {
    const XmlElement root = document_.child("platform");
    read_zone(root);
    for (std::size_t i = 0; i < routes_.size(); ++i) read_route(i);
    if (nodes().empty() && problems_.empty()) problem(root, "has no host");
    problems_.throw_if_any();
    return std::move(platform_);
  }
  std::vector<std::string> notes() const { return notes_; }
  FilePlace place_of_route(std::size_t number) const { return places_.of(routes_[number].first); }

 private:
  void problem(const XmlElement& element, std::string message, std::string_view attribute = "") {
    if (++problem_count_ > 100) return;
    problems_.add(problem_at(file_, places_.of(element, attribute), std::move(message), element.name()));
  }
  void note(const XmlElement& element, const std::string& message) {
    if (noted_.size() >= kMostNotes || !noted_.emplace(message, notes_.size()).second) return;
    notes_.push_back(fmt::format("{}:{}: {}", file_, places_.of(element).line, message));
  }

  using Names = std::initializer_list<std::string_view>;
  static bool is_among(std::string_view word, Names words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  // Note the attributes and the children of an element that are not in these lists.
  void note_attributes(const XmlElement& element, Names known) {
    for (const pugi::xml_attribute& attribute : element.attributes()) {
      const std::string_view name = attribute.name();
      if (is_among(name, known)) continue;
      note(element, fmt::format("'{}' of {} has no effect here{}", name, element.name(),
                                name.ends_with("_file") ? ": rates and latencies do not change with time" : ""));
    }
  }
  void note_unused(const XmlElement& element, Names attributes, Names children = {}) {
    note_attributes(element, attributes);
    for (const XmlElement& child : element.children()) {
      const std::string_view name = child.name();
      if (child.type() != pugi::node_element || is_among(name, children)) continue;
      if (name == "prop") note_property(child);
      if (name != "prop") note(child, fmt::format("element '{}' of {} has no effect here", name, element.name()));
    }
  }
  void note_property(const XmlElement& prop) {
    const std::string_view id = prop.attribute("id").value();
    if (!id.starts_with("tandem.")) note(prop, fmt::format("property '{}' has no effect here", id));
  }

  // `place`: of several values, such as the speeds of a host's states.
  double number(const XmlElement& element, const char* attribute, std::string_view base, double otherwise,
                int place = 0) {
    std::string_view stated = element.attribute(attribute).value();
    if (stated.empty()) return otherwise;
    for (; place > 0 && stated.find(',') != std::string_view::npos; --place) {
      stated.remove_prefix(stated.find(',') + 1);
      stated.remove_prefix(std::min(stated.find_first_not_of(' '), stated.size()));
    }
    if (place > 0) problem(element, "pstate: there are fewer speeds");
    return number_of(element, attribute, base, std::string(stated));
  }

  double number_of(const XmlElement& element, const char* attribute, std::string_view base, const std::string& stated) {
    const auto value = simgrid_quantity(std::string_view(stated).substr(0, stated.find(',')), base);
    constexpr double kNoProblem = 1;  // a value that no later check refuses again
    if (!value) {
      problem(element,
              fmt::format("{}: expected a number with a unit of {}, found '{}'", attribute, base, shortened(stated)),
              attribute);
      return kNoProblem;
    }
    const std::string wrong = quantity_problem(*value, dimension_of(base), shortened(stated), true);
    if (wrong.empty()) return *value;
    problem(element, fmt::format("{}: {}", attribute, wrong), attribute);
    return kNoProblem;
  }

  std::vector<DescribedNode>& nodes() { return platform_.graph.nodes; }

  void read_zone(const XmlElement& zone) {
    note_attributes(zone, {"id", "routing", "version"});
    const std::string_view routing = zone.attribute("routing").value();
    const bool is_whole = !routing.starts_with("Floyd") && !routing.starts_with("Dijkstra");
    for (const XmlElement& child : zone.children()) {
      const std::string_view name = child.name();
      if (name == "zone" || name == "AS") {
        read_zone(child);
      } else if (name == "host") {
        add_host(child, child.attribute("id").value());
      } else if (name == "router") {
        add_node(child, child.attribute("id").value(), "router");
        note_unused(child, {"id"});
      } else if (name == "link") {
        add_link(child, child.attribute("id").value());
      } else if (name == "cluster" || name == "cabinet") {
        read_cluster(child);
      } else if (name == "route" || name == "zoneRoute" || name == "ASroute") {
        routes_.emplace_back(child, is_whole);
      } else if (name == "prop") {
        read_property(child);
      } else if (name == "config") {
        note_unused(child, {"id"});
      } else if (name == "trace" || name == "trace_connect") {
        note(child, fmt::format("'{}' has no effect here: rates and latencies do not change with time", name));
      } else if (child.type() == pugi::node_element) {
        note(child, fmt::format("element '{}' is left out", name));
      }
    }
  }

  // Reads the kind of a router from its property: "tandem.node.w0.pcie0" = "pcie_switch 0".
  void read_property(const XmlElement& element) {
    const std::string_view id = element.attribute("id").value();
    constexpr std::string_view kNode = "tandem.node.";
    if (id.starts_with(kNode)) described_[std::string(id.substr(kNode.size()))] = element.attribute("value").value();
    note_property(element);
  }

  DescribedNode& add_node(const XmlElement& element, const std::string& id, const std::string& kind) {
    DescribedNode node;
    node.name = id;
    node.kind = kind;
    node.place = places_.of(element);
    if (id.empty()) problem(element, "has no id");
    if (!by_name_.emplace(id, nodes().size()).second) problem(element, "a second node '" + id + "'");
    if (const auto known = described_.find(id); known != described_.end()) describe(node, known->second);
    nodes().push_back(std::move(node));
    return nodes().back();
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
    note_unused(element, {"id", "speed", "core", "pstate"});
    node.flops_per_s = number(element, "speed", "f", 0, std::clamp(element.attribute("pstate").as_int(0), 0, 1 << 16));
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
    platform_.has_kinds = platform_.has_kinds || node.kind != "host";
    if (node.kind == "gpu" || node.kind == "cpu") node.flops_per_s = node.kind == "gpu" ? 0 : node.flops_per_s;
  }

  void add_link(const XmlElement& element, const std::string& id) {
    PlatformLink link;
    link.id = id;
    link.place = places_.of(element);
    link.bytes_per_s = number(element, "bandwidth", "Bps", 0);
    link.latency_s = number(element, "latency", "s", 0);
    note_unused(element, {"id", "bandwidth", "latency", "sharing_policy"});
    const std::string_view policy = element.attribute("sharing_policy").value();
    if (policy == "WIFI") note(element, "sharing_policy WIFI has no effect here: the link is taken as a cable");
    if (policy.empty() || policy == "SHARED") link.direction = Direction::half_duplex;
    link.is_fatpipe = policy == "FATPIPE";
    if (!(link.bytes_per_s > 0)) problem(element, "link '" + id + "' needs a bandwidth greater than 0");
    for (const XmlElement& prop : element.children("prop")) {
      const std::string_view key = prop.attribute("id").value();
      if (key == "tandem.kind") link.kind = prop.attribute("value").value();
      if (key == "tandem.direction" && std::string_view(prop.attribute("value").value()) == "one_way") {
        link.direction = Direction::one_way;
      }
    }
    if (!by_link_.emplace(id, platform_.links.size()).second) problem(element, "a second link '" + id + "'");
    platform_.links.push_back(std::move(link));
  }

  // A cluster's hosts are connected to its switch. With a backbone there are two switches, which the backbone joins in
  // one direction, so that every flow crosses it once.
  struct Cluster {
    XmlElement element{};
    double bytes_per_s = 0, latency_s = 0;
    Direction direction = Direction::duplex;
    std::size_t in = 0, out = 0;
  };

  void read_cluster(const XmlElement& element) {
    const std::string_view shape = element.attribute("topology").value();
    if (!shape.empty() && shape != "FLAT") {
      return problem(element,
                     fmt::format("a cluster of topology {} is not read; write `cluster:` with a fabric of kind "
                                 "torus, fat_tree or dragonfly in Tandem's own file",
                                 shape));
    }
    note_unused(element, {"id", "prefix", "suffix", "radical", "speed", "core", "pstate", "bw", "lat", "sharing_policy",
                          "bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "topology"});
    const std::string prefix = element.attribute("prefix").value(), suffix = element.attribute("suffix").value();
    std::string id = element.attribute("id").value();
    const auto names = hosts_of_list("[" + std::string(element.attribute("radical").value()) + "]");
    if (!names || names->size() > 100000)
      return problem(element, "radical: expected ranges such as 0-15, of at most 100,000 hosts");
    Cluster cluster;
    cluster.element = element;
    cluster.bytes_per_s = number(element, "bw", "Bps", 0);
    cluster.latency_s = number(element, "lat", "s", 0);
    if (!(cluster.bytes_per_s > 0)) return problem(element, "needs a bw greater than 0");
    const bool is_half = std::string_view(element.attribute("sharing_policy").value()) == "SHARED";
    cluster.direction = is_half ? Direction::half_duplex : Direction::duplex;
    const std::size_t router = nodes().size();
    if (id.empty()) id = "cluster";
    add_node(element, id, "router");
    const std::string stated = element.attribute("router_id").value();
    by_name_.emplace(stated.empty() ? prefix + id + "_router" + suffix : stated, router);
    cluster.in = cluster.out = router;
    if (*element.attribute("bb_bw").value() != '\0') add_backbone(cluster, id);
    for (const std::string& name : *names) add_cluster_host(cluster, prefix + name + suffix);
  }

  void join(const Cluster& cluster, std::size_t from, std::size_t to, Direction direction, double rate,
            double latency_s) {
    DescribedLink link;
    link.from = from;
    link.to = to;
    link.kind = "network";
    link.bytes_per_s = rate;
    link.latency_s = latency_s;
    link.direction = direction;
    link.place = places_.of(cluster.element);
    platform_.graph.links.push_back(std::move(link));
  }

  void add_backbone(Cluster& cluster, const std::string& id) {
    const std::size_t router = cluster.in;
    const double rate = number(cluster.element, "bb_bw", "Bps", 1);
    if (!(rate > 0)) return problem(cluster.element, "needs a bb_bw greater than 0");
    if (std::string_view(cluster.element.attribute("bb_sharing_policy").value()) == "FATPIPE")
      note_fatpipe(cluster.element);
    cluster.in = nodes().size();
    add_node(cluster.element, id + ".backbone.in", "router");
    cluster.out = nodes().size();
    add_node(cluster.element, id + ".backbone.out", "router");
    join(cluster, cluster.in, cluster.out, Direction::one_way, rate, number(cluster.element, "bb_lat", "s", 0));
    join(cluster, router, cluster.in, Direction::one_way, rate, 0);
    join(cluster, cluster.out, router, Direction::one_way, rate, 0);
  }

  void add_cluster_host(const Cluster& cluster, const std::string& name) {
    std::size_t end = nodes().size();
    DescribedNode& node = add_node(cluster.element, name, "host");
    node.flops_per_s =
        number(cluster.element, "speed", "f", 0, std::clamp(cluster.element.attribute("pstate").as_int(0), 0, 1 << 16));
    node.cores = std::clamp(cluster.element.attribute("core").as_int(1), 1, 1 << 16);
    const double rate = cluster.bytes_per_s;
    if (cluster.in == cluster.out) return join(cluster, end, cluster.in, cluster.direction, rate, cluster.latency_s);
    double latency_s = cluster.latency_s;
    if (cluster.direction == Direction::half_duplex) {
      add_node(cluster.element, name + ".switch", "router");
      join(cluster, end, nodes().size() - 1, cluster.direction, rate, latency_s);
      end = nodes().size() - 1;
      latency_s = 0;
    }
    join(cluster, end, cluster.in, Direction::one_way, rate, latency_s);
    join(cluster, cluster.out, end, Direction::one_way, rate, latency_s);
  }

  std::optional<std::size_t> end_of(const XmlElement& route, const char* gateway, const char* plain) {
    std::string name = route.attribute(gateway).value();
    if (name.empty()) name = route.attribute(plain).value();
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    problem(route, fmt::format("no host or router '{}'", name));
    return std::nullopt;
  }

  void read_route(std::size_t number) {
    const auto& [element, is_whole] = routes_[number];
    note_unused(element, {"src", "dst", "gw_src", "gw_dst", "symmetrical"}, {"link_ctn"});
    const auto from = end_of(element, "gw_src", "src");
    const auto to = end_of(element, "gw_dst", "dst");
    if (!from || !to || *from == *to) return;
    PlatformRoute route{*from, *to, {}, !is_no(element.attribute("symmetrical").value()), is_whole, number};
    for (const XmlElement& hop : element.children("link_ctn")) {
      const auto known = by_link_.find(hop.attribute("id").value());
      if (known == by_link_.end()) return problem(hop, fmt::format("no link '{}'", hop.attribute("id").value()));
      route.hops.push_back({known->second, std::string_view(hop.attribute("direction").value()) == "DOWN"});
      if (platform_.links[known->second].is_fatpipe) note_fatpipe(hop);
    }
    if (!route.hops.empty()) platform_.routes.push_back(std::move(route));
  }

  static bool is_no(std::string_view word) { return word == "NO" || word == "no"; }

  void note_fatpipe(const XmlElement& element) {
    note(element, "a FATPIPE limits every flow alone; here flows that enter it at one place share it");
  }

  XmlPlaces places_;
  const std::string& file_;
  pugi::xml_document document_{};
  Diagnostics problems_{};
  int problem_count_ = 0;
  std::vector<std::string> notes_{};
  Platform platform_{};
  std::map<std::string, std::size_t> by_name_{}, by_link_{}, noted_{};
  std::map<std::string, std::string> described_{};
  std::vector<std::pair<XmlElement, bool>> routes_{};  // and whether it is a complete route
};

}  // namespace

ImportedTopology import_simgrid_platform(std::string_view text, const std::string& file, const ImportOptions& options) {
  PlatformReader reader(text, file);
  const Platform platform = reader.read();
  const std::string name = std::filesystem::path(file).stem().string();
  ImportedTopology imported = build_described(join_routes(platform, false), file, options, name);
  if (find_difference(platform, imported.topology)) {
    imported = build_described(join_routes(platform, true), file, options, name);
    if (const auto difference = find_difference(platform, imported.topology)) {
      throw InputError({problem_at(file, reader.place_of_route(difference->number), difference->text, "route")});
    }
  }
  const std::vector<std::string> notes = reader.notes();
  imported.notes.insert(imported.notes.begin(), notes.begin(), notes.end());
  return imported;
}

}  // namespace tandem
