// Complete dumps (NCCL_TOPO_DUMP_FILE) of a machine that the catalog has: nothing is borrowed, and what comes out is
// what the catalog says.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/topologies/testing.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/nccl/nccl_xml.h"
#include "topologies/views/paths.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct Bridge {
  const char* speed;
  int width;
};

// An HGX H100 with a NIC beside each GPU, as NCCL 2.22 dumps it; NVSwitches are four devices.
std::string hgx_h100_dump(Bridge bridge, int mbits_per_s) {
  std::string text = "<system version=\"1\">\n";
  for (int cpu = 0; cpu < 2; ++cpu) {
    text += fmt::format(
        "<cpu numaid=\"{}\" affinity=\"ffffffff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"143\">\n",
        cpu);
    for (int i = 4 * cpu; i < 4 * cpu + 4; ++i) {
      text += fmt::format(
          "<pci busid=\"0000:{0:x}0:00.0\" class=\"0x060400\" link_speed=\"{3}\" link_width=\"{4}\">"
          "<pci busid=\"0000:{0:x}1:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
          "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"{1}\" sm=\"90\" rank=\"{1}\" gdr=\"1\">"
          "<nvlink target=\"0000:05:00.0\" count=\"4\" tclass=\"0x068000\"/>"
          "<nvlink target=\"0000:06:00.0\" count=\"5\" tclass=\"0x068000\"/>"
          "<nvlink target=\"0000:07:00.0\" count=\"5\" tclass=\"0x068000\"/>"
          "<nvlink target=\"0000:08:00.0\" count=\"4\" tclass=\"0x068000\"/></gpu></pci>"
          "<pci busid=\"0000:{0:x}2:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" "
          "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"mlx5_{1}\" dev=\"{1}\" speed=\"{2}\" "
          "port=\"1\" guid=\"0x{1}1\" maxconn=\"131072\" gdr=\"1\"/></nic></pci></pci>\n",
          i + 1, i, mbits_per_s, bridge.speed, bridge.width);
    }
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

void expect_paths_of_the_catalog(const Topology& topology) {
  const Topology catalog = load_catalog_node("hgx-h100");
  const PathMatrix read = paths_of(topology, 0), known = paths_of(catalog, 0);
  ASSERT_EQ(read.devices.size(), known.devices.size());
  for (std::size_t from = 0; from < read.devices.size(); ++from) {
    for (std::size_t to = 0; to < read.devices.size(); ++to) {
      const std::string pair = topology.node(read.devices[from]).name + " - " + topology.node(read.devices[to]).name;
      EXPECT_EQ(path_text(read.between(from, to), false), path_text(known.between(from, to), false)) << pair;
      EXPECT_DOUBLE_EQ(read.between(from, to).bandwidth_bytes_per_s, known.between(from, to).bandwidth_bytes_per_s)
          << pair;
    }
  }
  const auto halves = [](const Topology& machine) {
    return bisection_of(machine, machine.nodes_of(0, NodeKind::gpu)).bandwidth_bytes_per_s;
  };
  EXPECT_DOUBLE_EQ(halves(topology), halves(catalog));
}

TEST(NcclDump, OfAMachineOfTheCatalogIsThatMachine) {
  const std::string dump = hgx_h100_dump({"32.0 GT/s PCIe", 16}, 400000);
  const ImportedTopology imported = import_nccl_xml(dump, "dump.xml", {});
  EXPECT_EQ(imported.notes, std::vector<std::string>());
  expect_paths_of_the_catalog(imported.topology);
}

// A virtual machine's bridge states the least that PCIe has.
TEST(NcclDump, OfAVirtualMachineHasBridgesAsFastAsTheirDevices) {
  const ImportedTopology imported = import_nccl_xml(hgx_h100_dump({"2.5 GT/s PCIe", 1}, 400000), "dump.xml", {});
  EXPECT_THAT(imported.notes, Contains(HasSubstr("dump.xml:3: assumed: a virtual machine's bridge, which carries 48 "
                                                 "GB/s as the devices below it do, not the 0.1875 GB/s")));
  expect_paths_of_the_catalog(imported.topology);
}

// A switch of an older generation is what it says.
TEST(NcclDump, KeepsTheRateOfARealSwitch) {
  const ImportedTopology imported = import_nccl_xml(hgx_h100_dump({"8.0 GT/s PCIe", 8}, 400000), "dump.xml", {});
  EXPECT_EQ(imported.notes, std::vector<std::string>());
  const PathMatrix paths = paths_of(imported.topology, 0);
  EXPECT_DOUBLE_EQ(paths.between(0, 9).bandwidth_bytes_per_s, 6e9);
}

}  // namespace
}  // namespace tandem
