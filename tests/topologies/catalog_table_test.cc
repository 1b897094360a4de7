// The table of the catalog in docs/topology.md says what the files say.
#include <fmt/format.h>

#include <sstream>

#include "tests/topologies/testing.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

std::string rate_text(double bytes_per_s) {
  return format_quantity(bytes_per_s, Dimension::bytes_per_second);
}

// What joins the first GPU to the others: the sum of its NVLinks, or its PCIe link.
std::string links_text(const Topology& topology, NodeIndex gpu) {
  double nvlink = 0;
  double pcie = 0;
  bool has_switch = false;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(index);
    if (link.from != gpu && link.to != gpu) continue;
    const NodeIndex other = link.from == gpu ? link.to : link.from;
    has_switch = has_switch || topology.node(other).kind == NodeKind::nvswitch;
    (link.model->kind == LinkKind::nvlink ? nvlink : pcie) += link.model->bandwidth_bytes_per_s.value;
  }
  const bool is_rack = topology.facts().nvlink_domain > 1;
  if (nvlink > 0 && is_rack)
    return fmt::format("NVSwitch of {} machines, {}", topology.facts().nvlink_domain, rate_text(nvlink));
  if (nvlink > 0) return (has_switch ? "NVSwitch, " : "direct, ") + rate_text(nvlink);
  return "host, " + rate_text(pcie) + (topology.facts().p2p ? "" : ", no P2P");
}

std::string row_of(const std::string& name) {
  const Topology topology = load_catalog_node(name);
  const auto gpus = topology.nodes_of(0, NodeKind::gpu);
  const auto nics = topology.nodes_of(0, NodeKind::nic);
  const LinkModel& port = *topology.node(nics.front()).port;
  const std::string devices =
      gpus.empty() ? "none" : fmt::format("{} x {}", gpus.size(), topology.node(gpus.front()).device->name);
  return fmt::format("| `{}` | {} | {} | {} x {} {} |\n", name, devices,
                     gpus.empty() ? "" : links_text(topology, gpus.front()), nics.size(),
                     rate_text(port.bandwidth_bytes_per_s.value), port.transport);
}

TEST(CatalogTable, OfTheDocumentationIsThatOfTheFiles) {
  std::string expected = "| machine | GPUs | joined by | NICs |\n|---|---|---|---|\n";
  for (const std::string& name : catalog_names()) expected += row_of(name);
  const std::string page = read_input_file(TANDEM_SOURCE_DIR "/docs/topology.md");
  EXPECT_NE(page.find("\n\n" + expected + "\n"), std::string::npos) << "docs/topology.md must hold\n" << expected;
}

}  // namespace
}  // namespace tandem
