#include "topologies/readers/nccl/nccl_xml.h"

#include <sstream>

#include "tests/topologies/testing.h"
#include "topologies/readers/nccl/nccl_rates.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

using Names = std::vector<std::string>;

double rate_of(const Topology& topology, const std::string& from, const std::string& to) {
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(index);
    const std::string& a = topology.node(link.from).name;
    const std::string& b = topology.node(link.to).name;
    if ((a == from && b == to) || (a == to && b == from)) return link.model->bandwidth_bytes_per_s.value;
  }
  return 0;
}

std::string pci(const std::string& busid, const std::string& kind, const std::string& inside,
                const std::string& speed = "16.0 GT/s PCIe", const std::string& width = "16") {
  return "<pci busid=\"" + busid + "\" class=\"" + kind + "\" link_speed=\"" + speed + "\" link_width=\"" + width +
         "\">" + inside + "</pci>";
}

std::string nvlink(const std::string& target, int count, const std::string& kind) {
  return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(count) + "\" tclass=\"" + kind + "\"/>";
}

std::string cpu(int numa, const std::string& inside, const std::string& extra = "") {
  return "<cpu numaid=\"" + std::to_string(numa) +
         "\" affinity=\"0000ffff\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\" " + extra +
         ">" + inside + "</cpu>";
}

Topology parsed(const std::string& inside) {
  return parse_nccl_xml("<system version=\"1\">" + inside + "</system>", "dump.xml");
}

TEST(NcclRates, PciSpeedsInBothSpellings) {
  using nccl::pci_rate;
  EXPECT_EQ(pci_rate(16, "8 GT/s"), 12e9);
  EXPECT_EQ(pci_rate(16, "8.0 GT/s PCIe"), 12e9);
  EXPECT_EQ(pci_rate(16, "16 GT/s"), 24e9);
  EXPECT_EQ(pci_rate(16, "16.0 GT/s PCIe"), 24e9);
  EXPECT_EQ(pci_rate(16, "32.0 GT/s PCIe"), 48e9);
  EXPECT_EQ(pci_rate(16, "64.0 GT/s PCIe"), 96e9);
  EXPECT_EQ(pci_rate(8, "5.0 GT/s"), 3e9);
  EXPECT_EQ(pci_rate(4, "2.5 GT/s PCIe"), 0.75e9);
  EXPECT_EQ(pci_rate(0, ""), 12e9);  // what a virtual machine reports
  EXPECT_EQ(pci_rate(16, "Unknown"), 12e9);
}

TEST(NcclRates, NvlinksOfEachGeneration) {
  EXPECT_EQ(12 * nccl::nvlink_rate(80), 240e9);
  EXPECT_EQ(18 * nccl::nvlink_rate(90), 370.8e9);
  EXPECT_DOUBLE_EQ(18 * nccl::nvlink_rate(100), 721.8e9);
  EXPECT_EQ(nccl::nvlink_rate(60), 18e9);
  EXPECT_EQ(nccl::nvlink_rate(70), 20e9);
  EXPECT_EQ(nccl::nvlink_rate(86), 12e9);
}

TEST(NcclRates, SocketsOfEachProcessor) {
  using nccl::numa_rate;
  EXPECT_EQ(numa_rate({"x86_64", "GenuineIntel", 6, 0x4f}), 6e9);
  EXPECT_EQ(numa_rate({"x86_64", "GenuineIntel", 6, 85}), 10e9);
  EXPECT_EQ(numa_rate({"x86_64", "GenuineIntel", 6, 143}), 22e9);
  EXPECT_EQ(numa_rate({"x86_64", "GenuineIntel", 6, 207}), 40e9);
  EXPECT_EQ(numa_rate({"x86_64", "AuthenticAMD", 25, 1}), 16e9);
  EXPECT_EQ(numa_rate({"x86_64", "CentaurHauls", 7, 0x3b}), 6e9);
  EXPECT_EQ(numa_rate({"x86_64", "CentaurHauls", 7, 0x5b}), 9e9);
  EXPECT_EQ(numa_rate({"arm64", "", 0, 0}), 6e9);
  EXPECT_EQ(numa_rate({"ppc64", "", 0, 0}), 32e9);
}

// The catalog's machine of this GPU, which completes the file, is one whose GPUs do not.
TEST(NcclXml, GpusThatNvlinkJoinsReachEachOthersMemory) {
  const std::string a100 = "0x030200\" vendor=\"0x10de\" device=\"0x20f1";
  const auto machine = [&](const std::string& links) {
    return parsed(cpu(0, pci("0000:10:00.0", a100, "<gpu dev=\"0\" sm=\"80\">" + links + "</gpu>", "", "") +
                             pci("0000:20:00.0", a100, "<gpu dev=\"1\" sm=\"80\"/>", "", "")));
  };
  EXPECT_TRUE(machine(nvlink("0000:20:00.0", 12, "0x030200")).facts().p2p);
  EXPECT_FALSE(machine("").facts().p2p);
}

TEST(NcclXml, OrdersGpusByDevWithoutRanks) {
  const Topology topology = parsed(cpu(0, pci("0000:10:00.0", "0x030200", "<gpu dev=\"1\" sm=\"90\"/>")) +
                                   cpu(1, pci("0000:90:00.0", "0x030200", "<gpu dev=\"0\" sm=\"90\"/>")));
  const auto gpus = topology.nodes_of(0, NodeKind::gpu);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(topology.node(gpus[0]).name, "w0.gpu0");
  EXPECT_EQ(rate_of(topology, "w0.gpu0", "w0.cpu1"), 24e9);
  EXPECT_EQ(rate_of(topology, "w0.cpu0", "w0.cpu1"), 16e9);
  EXPECT_EQ(topology.node(gpus[0]).device->name, "NVIDIA H100 SXM5 80 GB");
  EXPECT_EQ(topology.node(gpus[0]).device->architecture, "sm_90");
  EXPECT_EQ(topology.node(0).device->cores, 16);
  EXPECT_EQ(way(topology, "w0.gpu0", "w0.gpu1"), (Names{"w0.gpu0", "w0.cpu1", "w0.cpu0", "w0.gpu1"}));
}

// Whether the product comes from the catalog or is a typical one.
TEST(NcclXml, TheArchitectureIsTheComputeCapability) {
  for (const int capability : {37, 52, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 120}) {
    const Topology topology =
        parsed(cpu(0, pci("0000:10:00.0", "0x030200", "<gpu dev=\"0\" sm=\"" + std::to_string(capability) + "\"/>")));
    const NodeIndex gpu = topology.nodes_of(0, NodeKind::gpu).front();
    EXPECT_EQ(topology.node(gpu).device->architecture, "sm_" + std::to_string(capability));
  }
}

TEST(NcclXml, ReadsFilesOfRccl) {
  const auto gpu = [](const std::string& bus, int dev, const std::string& target, const std::string& gcn) {
    return pci(bus, "0x120000",
               "<gpu dev=\"" + std::to_string(dev) + "\" sm=\"304\" gcn=\"" + gcn + "\"><xgmi target=\"" + target +
                   "\" count=\"1\" tclass=\"0x120000\"/></gpu>",
               "32.0 GT/s PCIe");
  };
  const auto pair_of = [&](const std::string& gcn) {
    return parse_nccl_xml(
        "<system version=\"2\">" +
            cpu(0, gpu("0000:0c:00.0", 0, "0000:15:00.0", gcn) + gpu("0000:15:00.0", 1, "0000:0c:00.0", gcn)) +
            "</system>",
        "rccl.xml");
  };
  const Topology mi300 = pair_of("gfx942");
  EXPECT_EQ(rate_of(mi300, "w0.gpu0", "w0.gpu1"), 48e9);
  EXPECT_EQ(rate_of(mi300, "w0.gpu0", "w0.cpu0"), 48e9);
  EXPECT_EQ(mi300.node(mi300.nodes_of(0, NodeKind::gpu)[1]).device->name, "AMD Instinct MI300X");
  const Topology mi200 = pair_of("910");
  EXPECT_EQ(rate_of(mi200, "w0.gpu0", "w0.gpu1"), 36e9);
  EXPECT_EQ(mi200.node(mi200.nodes_of(0, NodeKind::gpu)[0]).device->architecture, "gfx90a");
  EXPECT_EQ(rate_of(pair_of("908"), "w0.gpu0", "w0.gpu1"), 24e9);
}

TEST(NcclXml, DirectNvlinksAreOneEdgeAPair) {
  const Topology topology =
      parsed(cpu(0, pci("0000:10:00.0", "0x030200",
                        "<gpu dev=\"0\" sm=\"70\">" + nvlink("0000:0B:00.0", 2, "0x030200") +
                            nvlink("0000:ff:00.0", 1, "0x030200") + "</gpu>") +
                        pci("0000:0b:00.0", "0x030200",
                            "<gpu dev=\"1\" sm=\"70\">" + nvlink("0000:10:00.0", 2, "0x030200") + "</gpu>")));
  EXPECT_EQ(topology.link_count(), 3u);
  EXPECT_EQ(rate_of(topology, "w0.gpu0", "w0.gpu1"), 40e9);
}

TEST(NcclXml, SwitchesAreOneNodeWhateverTheFileLists) {
  std::string gpus;
  for (int i = 0; i < 4; ++i) {
    std::string links;
    for (int k = 0; k < 6; ++k) links += nvlink("0000:c" + std::to_string(k) + ":00.0", 2, "0x068000");
    gpus += pci("0000:1" + std::to_string(i) + ":00.0", "0x030200",
                "<gpu dev=\"" + std::to_string(i) + "\" sm=\"80\">" + links + "</gpu>");
  }
  const Topology topology = parsed(cpu(0, gpus + pci("0000:c0:00.0", "0x068000", "")));
  EXPECT_EQ(topology.nodes_of(0, NodeKind::nvswitch).size(), 1u);
  EXPECT_EQ(rate_of(topology, "w0.gpu3", "w0.nvswitch0"), 240e9);
  EXPECT_EQ(way(topology, "w0.gpu0", "w0.gpu3"), (Names{"w0.gpu0", "w0.nvswitch0", "w0.gpu3"}));
}

TEST(NcclXml, NicsTakeTheirPortFromTheirNet) {
  const std::string net = "<nic><net name=\"mlx5_0\" dev=\"0\" speed=\"400000\" port=\"1\" latency=\"1.5\"/></nic>";
  const std::string unused = "<nic><net name=\"eth0\" speed=\"100\"/></nic>";
  const Topology topology = parsed(
      cpu(0, pci("0000:01:00.0", "0x060400",
                 pci("0000:02:00.0", "0x020700", net, "32.0 GT/s PCIe") + pci("0000:03:00.0", "0x020000", unused)) +
                 "<nic><net dev=\"1\" speed=\"0\"/></nic>"));
  const auto nics = topology.nodes_of(0, NodeKind::nic);
  ASSERT_EQ(nics.size(), 2u);
  EXPECT_EQ(topology.node(nics[0]).port->bandwidth_bytes_per_s.value, 50e9);
  EXPECT_EQ(topology.node(nics[0]).port->latency_s.value, 1.5e-6);
  EXPECT_EQ(topology.node(nics[1]).port->bandwidth_bytes_per_s.value, 1.25e9);
  EXPECT_EQ(topology.node(nics[1]).port->bandwidth_bytes_per_s.provenance, Provenance::assumed);
  EXPECT_EQ(rate_of(topology, "w0.pcie0", "w0.nic0"), 48e9);
  EXPECT_EQ(rate_of(topology, "w0.cpu0", "w0.nic1"), 5000e9);
}

TEST(NcclXml, PortsOfOneCardShareItsPcieLink) {
  const Topology topology =
      parsed(cpu(0, pci("0000:02:00.0", "0x020700",
                        "<nic><net dev=\"0\" speed=\"100000\"/><net dev=\"1\" speed=\"100000\"/></nic>")));
  EXPECT_EQ(topology.nodes_of(0, NodeKind::nic).size(), 2u);
  EXPECT_EQ(way(topology, "w0.nic0", "w0.cpu0"), (Names{"w0.nic0", "w0.pcie0", "w0.cpu0"}));
  EXPECT_EQ(rate_of(topology, "w0.pcie0", "w0.cpu0"), 24e9);
}

TEST(NcclXml, HostHashesAreWorkersAndShareAnNvlinkDomain) {
  const auto host = [](const std::string& hash) {
    return cpu(0,
               pci("0000:10:00.0", "0x030200",
                   "<gpu dev=\"0\" sm=\"90\">" + nvlink("0000:c0:00.0", 18, "0x068000") + "</gpu>"),
               "host_hash=\"" + hash + "\"");
  };
  const Topology topology = parsed(host("0x1a2b") + host("0x9f"));
  EXPECT_EQ(topology.worker_count(), 2);
  EXPECT_EQ(way(topology, "w0.gpu0", "w1.gpu0"), (Names{"w0.gpu0", "fabric.nvswitch0", "w1.gpu0"}));
  EXPECT_EQ(rate_of(topology, "w0.cpu0", "w1.cpu0"), 0);
}

TEST(NcclXml, CpuSideLinksAndPciLinks) {
  const Topology topology = parsed(cpu(0, pci("0000:10:00.0", "0x030200",
                                              "<gpu dev=\"0\" sm=\"90\">" + nvlink("0004:04:00.0", 3, "0x068001") +
                                                  "<c2c bw=\"44800\" count=\"10\"/></gpu>") +
                                              pci("0000:20:00.0", "0x060400", "<pcilink target=\"0000:30:00.0\"/>") +
                                              pci("0000:30:00.0", "0x060400", "<pcilink target=\"0000:20:00.0\"/>")));
  EXPECT_EQ(rate_of(topology, "w0.pcie0", "w0.pcie1"), 5000e9);
  std::vector<double> to_cpu;
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    if (topology.node(topology.link(i).from).name == "w0.gpu0") {
      to_cpu.push_back(topology.link(i).model->bandwidth_bytes_per_s.value);
    }
  }
  ASSERT_EQ(to_cpu.size(), 2u);
  EXPECT_DOUBLE_EQ(to_cpu[0], 448e9);
  EXPECT_DOUBLE_EQ(to_cpu[1], 61.8e9);
}

TEST(NcclXml, WhatIsReadCanBeWritten) {
  const Topology topology =
      parsed(cpu(0, pci("0000:10:00.0", "0x030200", "<gpu dev=\"0\" sm=\"86\"/>")) + "<mystery/><!-- ignored -->");
  std::ostringstream first;
  write_topology_yaml(topology, first);
  std::ostringstream second;
  write_topology_yaml(parse_topology_yaml(first.str(), "t.yaml"), second);
  EXPECT_EQ(first.str(), second.str());
  EXPECT_EQ(topology.node(topology.nodes_of(0, NodeKind::gpu)[0]).device->peak_flops_per_s.at(DType::f32).provenance,
            Provenance::assumed);
}

}  // namespace
}  // namespace tandem
