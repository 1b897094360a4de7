#include "topologies/views/writers.h"

#include <fmt/format.h>

#include "topologies/base/error.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

constexpr NodeIndex kFloydNodes = 256;  // routes in a larger zone are searched on demand

std::string dot_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : shown(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string_view word_of(Direction direction) {
  return direction == Direction::half_duplex ? "half" : direction == Direction::one_way ? "one_way" : "full";
}

void finish(std::ostream& stream, const Topology& topology) {
  if (!stream.flush()) throw Error("topology '" + topology.name() + "' could not be written");
}

double rate_of_host(const Node& node) {
  if (!node.device) return 1e9;
  double most = 0;
  for (const auto& [dtype, peak] : node.device->peak_flops_per_s) {
    if (dtype == DType::f32 || most == 0) most = peak.value;
  }
  return most > 0 ? most : 1e9;
}

}  // namespace

void write_dot(const Topology& topology, std::ostream& stream) {
  stream << "digraph " << dot_text(topology.name()) << " {\n";
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    const Node node = topology.node(index);
    stream << fmt::format("  {} [kind={}, worker={}", dot_text(node.name), name_of(node.kind), node.worker);
    if (node.device) stream << ", device=" << dot_text(node.device->name);
    if (node.device && !node.device->architecture.empty()) stream << ", architecture=" << node.device->architecture;
    if (node.port) {
      stream << fmt::format(", port=\"{}\"", node.port->bandwidth_bytes_per_s.value);
      if (!node.port->transport.empty()) stream << ", transport=" << node.port->transport;
    }
    stream << "];\n";
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    stream << fmt::format("  {} -> {} [kind={}, bw=\"{}\", lat=\"{}\", duplex={}];\n",
                          dot_text(topology.node(link.from).name), dot_text(topology.node(link.to).name),
                          name_of(link.model->kind), link.model->bandwidth_bytes_per_s.value,
                          link.model->latency_s.value, word_of(link.direction));
  }
  stream << "}\n";
  finish(stream, topology);
}

void write_graphml(const Topology& topology, std::ostream& stream) {
  stream << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n";
  for (const char* key : {"name", "kind", "device", "architecture", "worker", "port", "transport"}) {
    stream << fmt::format("  <key id=\"n_{0}\" for=\"node\" attr.name=\"{0}\" attr.type=\"string\"/>\n", key);
  }
  for (const char* key : {"kind", "bw", "lat", "duplex"}) {
    stream << fmt::format("  <key id=\"e_{0}\" for=\"edge\" attr.name=\"{0}\" attr.type=\"string\"/>\n", key);
  }
  stream << fmt::format("  <graph id=\"{}\" edgedefault=\"directed\">\n", xml_name(topology.name()));
  const auto data = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) stream << fmt::format("<data key=\"{}\">{}</data>", key, xml_name(value));
  };
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    const Node node = topology.node(index);
    stream << fmt::format("    <node id=\"n{}\">", index);
    data("n_name", node.name);
    data("n_kind", name_of(node.kind));
    data("n_worker", std::to_string(node.worker));
    if (node.device) data("n_device", node.device->name);
    if (node.device) data("n_architecture", node.device->architecture);
    if (node.port) data("n_port", fmt::format("{}", node.port->bandwidth_bytes_per_s.value));
    if (node.port) data("n_transport", node.port->transport);
    stream << "</node>\n";
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    stream << fmt::format("    <edge source=\"n{}\" target=\"n{}\">", link.from, link.to);
    data("e_kind", name_of(link.model->kind));
    data("e_bw", fmt::format("{}", link.model->bandwidth_bytes_per_s.value));
    data("e_lat", fmt::format("{}", link.model->latency_s.value));
    data("e_duplex", word_of(link.direction));
    stream << "</edge>\n";
  }
  stream << "  </graph>\n</graphml>\n";
  finish(stream, topology);
}

void write_simgrid_xml(const Topology& topology, std::ostream& stream) {
  stream << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n";
  stream << fmt::format("<platform version=\"4.1\">\n  <zone id=\"{}\" routing=\"{}\">\n", xml_name(topology.name()),
                        topology.node_count() <= kFloydNodes ? "Floyd" : "DijkstraCache");
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {  // properties that routers cannot have themselves
    const Node node = topology.node(index);
    if (node.device) continue;
    const std::string port = node.port ? fmt::format(" {}", node.port->bandwidth_bytes_per_s.value) : "";
    stream << fmt::format("    <prop id=\"tandem.node.{}\" value=\"{} {}{}\"/>\n", xml_name(node.name),
                          name_of(node.kind), node.worker, port);
  }
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    const Node node = topology.node(index);
    const std::string name = xml_name(node.name);
    const std::string kind(name_of(node.kind));
    if (!node.device) {
      stream << fmt::format("    <router id=\"{}\"/>\n", name);
      continue;
    }
    stream << fmt::format("    <host id=\"{}\" speed=\"{}f\" core=\"{}\">", name, rate_of_host(node),
                          node.device->cores);
    const auto prop = [&](const char* id, const std::string& value) {
      if (!value.empty()) stream << fmt::format("<prop id=\"tandem.{}\" value=\"{}\"/>", id, xml_name(value));
    };
    prop("kind", kind);
    prop("worker", std::to_string(node.worker));
    prop("device", node.device->name);
    prop("architecture", node.device->architecture);
    stream << "</host>\n";
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    stream << fmt::format(
        "    <link id=\"l{}\" bandwidth=\"{}Bps\" latency=\"{}s\" sharing_policy=\"{}\"><prop "
        "id=\"tandem.kind\" value=\"{}\"/>{}</link>\n",
        index, link.model->bandwidth_bytes_per_s.value, link.model->latency_s.value,
        link.direction == Direction::duplex ? "SPLITDUPLEX" : "SHARED", name_of(link.model->kind),
        link.direction == Direction::one_way ? "<prop id=\"tandem.direction\" value=\"one_way\"/>" : "");
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    const std::string from = xml_name(topology.node(link.from).name), to = xml_name(topology.node(link.to).name);
    const bool is_duplex = link.direction == Direction::duplex;
    stream << fmt::format("    <route src=\"{}\" dst=\"{}\" symmetrical=\"{}\"><link_ctn id=\"l{}\"{}/></route>\n",
                          from, to, link.direction == Direction::half_duplex ? "YES" : "NO", index,
                          is_duplex ? " direction=\"UP\"" : "");
    if (!is_duplex) continue;
    stream << fmt::format(
        "    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\"><link_ctn id=\"l{}\" direction=\"DOWN\"/></route>\n", to,
        from, index);
  }
  stream << "  </zone>\n</platform>\n";
  finish(stream, topology);
}

}  // namespace tandem
