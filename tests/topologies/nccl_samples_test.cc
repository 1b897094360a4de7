// The files that people have, tests/topologies/samples/README.md: what is read, and what is completed from where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/topologies/testing.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/nccl/nccl_xml.h"
#include "topologies/readers/pci_ids.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/views/paths.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;

const std::filesystem::path kSamples = TANDEM_SOURCE_DIR "/tests/topologies/samples/nccl";

struct Sample {
  const char* file;
  std::size_t gpus, nics, cpus;
  const char* product;
  double nvlink;  // GB/s, of all links of the first GPU
  double port;    // GB/s, of the first NIC
  const char* completed_with;
};

class NcclSample : public testing::TestWithParam<Sample> {};

TEST_P(NcclSample, IsReadWithWhatItLacksCompleted) {
  const Sample& sample = GetParam();
  const ImportedTopology imported = import_topology(kSamples / sample.file);
  const Topology& topology = imported.topology;
  const auto gpus = topology.nodes_of(0, NodeKind::gpu);
  ASSERT_EQ(gpus.size(), sample.gpus);
  EXPECT_EQ(topology.nodes_of(0, NodeKind::cpu).size(), sample.cpus);
  EXPECT_EQ(topology.device(gpus.front())->name, sample.product);
  EXPECT_DOUBLE_EQ(nvlink_rate_of(topology, gpus.front()), sample.nvlink * 1e9);
  const auto nics = topology.nodes_of(0, NodeKind::nic);
  ASSERT_EQ(nics.size(), sample.nics);
  EXPECT_EQ(topology.node(nics.front()).port->bandwidth_bytes_per_s.value, sample.port * 1e9);
  const std::string completed = sample.completed_with;
  if (completed.empty()) {
    EXPECT_THAT(imported.notes, Each(HasSubstr("gdr=0 has no effect here")));
  } else {
    EXPECT_THAT(imported.notes, Contains(HasSubstr("the rest is assumed to be as in " + completed)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, NcclSample,
    testing::Values(Sample{"aws_g5.48xl-topo.xml", 8, 1, 2, "NVIDIA A10G", 0, 12.5, "aws-g5"},
                    Sample{"aws_p4d-24xl-topo.xml", 8, 4, 2, "NVIDIA A100 SXM4 40 GB", 240, 12.5, "aws-p4d"},
                    Sample{"azure_ncv4-topo.xml", 4, 1, 4, "NVIDIA A100 PCIe 80 GB", 240, 12.5,
                           "azure-nc96ads-a100-v4"},
                    Sample{"azure_ndv2-topo.xml", 8, 1, 2, "NVIDIA Tesla V100 SXM2 32 GB", 132, 12.5, "azure-nd-v2"},
                    Sample{"azure_ndv4-topo.xml", 8, 8, 4, "NVIDIA A100 SXM4 40 GB", 240, 25, "azure-nd-a100-v4"},
                    Sample{"rccl_topo_16p1h.xml", 16, 8, 4, "AMD Instinct MI250X, one of its two dies", 252, 25, ""},
                    Sample{"rccl_topo_3p_pcie.xml", 3, 1, 2, "AMD Instinct MI210", 0, 25, ""},
                    Sample{"rccl_topo_4p3l.xml", 4, 2, 1, "AMD Instinct MI100", 72, 1.25, ""},
                    Sample{"rccl_topo_8p6l.xml", 8, 1, 2, "AMD Instinct MI100", 144, 25, ""},
                    Sample{"rccl_topo_8p_90a.xml", 8, 1, 1, "AMD Instinct MI210", 108, 0.125, ""},
                    Sample{"rccl_topo_8p_940.xml", 8, 8, 2, "AMD Instinct MI300X", 336, 50, ""},
                    Sample{"rccl_topo_8p_rome.xml", 8, 1, 2, "AMD Instinct MI60", 48, 25, ""}),
    [](const auto& instance) {
      std::string name = instance.param.file;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

std::string text_of(const std::string& sample) {
  return read_input_file(kSamples / sample);
}

ImportedTopology imported(const std::string& text, const std::string& complete_with = "",
                          const std::string& file = "node.xml") {
  ImportOptions options;
  options.complete_with = complete_with;
  return import_nccl_xml(text, file, options);
}

std::string sample_refusal(const std::string& text, const std::string& complete_with = "") {
  try {
    imported(text, complete_with);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// The paths of a machine of the catalog and of a file that is completed with it.
TEST(NcclCompletion, AFileOfACatalogMachineHasItsPathsAndRates) {
  for (const auto& [sample, name] :
       {std::pair{"aws_p4d-24xl-topo.xml", "aws-p4d"}, {"aws_g5.48xl-topo.xml", "aws-g5"}}) {
    const Topology file = import_topology(kSamples / sample).topology;
    const Topology machine = load_catalog_node(name);
    const PathMatrix read = paths_of(file, 0);
    const PathMatrix known = paths_of(machine, 0);
    ASSERT_EQ(read.devices.size(), known.devices.size());
    for (std::size_t i = 0; i < read.paths.size(); ++i) {
      EXPECT_EQ(read.paths[i].type, known.paths[i].type) << sample << " " << i;
      EXPECT_EQ(read.paths[i].bandwidth_bytes_per_s, known.paths[i].bandwidth_bytes_per_s) << sample << " " << i;
    }
  }
}

TEST(NcclCompletion, WhatIsCompletedIsAssumedAndListed) {
  const ImportedTopology one = imported(text_of("azure_ndv4-topo.xml"), "azure-nd-a100-v4");
  const Topology& topology = one.topology;
  const auto gpu = topology.nodes_of(0, NodeKind::gpu).front();
  EXPECT_EQ(topology.device(gpu)->memory_bytes.provenance, Provenance::assumed);
  EXPECT_EQ(topology.device(gpu)->memory_bytes.source, "as in azure-nd-a100-v4: NVIDIA A100 datasheet, dense");
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    if (topology.link_model(index).kind != LinkKind::nvlink) continue;
    EXPECT_EQ(topology.link_model(index).bandwidth_bytes_per_s.provenance, Provenance::assumed);
  }
  EXPECT_THAT(one.notes, Contains("node.xml: assumed: GPUs are NVIDIA A100 SXM4 40 GB, as in azure-nd-a100-v4"));
  EXPECT_THAT(one.notes,
              Contains("node.xml: assumed: links between 8 GPUs, 240 GB/s for each, as in azure-nd-a100-v4"));
  EXPECT_THAT(one.notes, Contains("node.xml:5: assumed: a port of 25 GB/s, as in azure-nd-a100-v4 (8 times)"));
}

TEST(NcclCompletion, WithoutAHintTheMessageNamesTheOptionAndTheMachinesThatFit) {
  EXPECT_EQ(
      sample_refusal(text_of("azure_ndv2-topo.xml")),
      "node.xml:3:5: cpu[0].pci[0]: nothing tells which product these 8 GPUs are; name the machine with "
      "--complete-with NAME (in YAML: complete_with: NAME), of the catalog or a file; of the catalog these have as "
      "many GPUs and NICs: aws-g4dn, aws-g5, aws-g6, aws-p3dn, azure-nd-v2, gcp-a2, pcie-m40-8gpu, "
      "pcie-p100-8gpu, pcie-titanx-8gpu");
  const std::string g5 = text_of("aws_g5.48xl-topo.xml");
  const std::string bare = g5.substr(g5.find("<system"));
  EXPECT_THAT(sample_refusal(bare),
              HasSubstr("9 pci elements without class and device, so that nothing tells which are GPUs"));
  EXPECT_THAT(sample_refusal(bare, "hgx-h100"),
              HasSubstr("hgx-h100 has another number of GPUs and NICs at its processors"));
  EXPECT_EQ(imported(bare, "aws-g5").topology.nodes_of(0, NodeKind::gpu).size(), 8u);
}

TEST(NcclCompletion, NoneKeepsWhatTheFileHas) {
  const ImportedTopology one = imported(text_of("aws_p4d-24xl-topo.xml"), "none");
  EXPECT_EQ(nvlink_rate_of(one.topology, one.topology.nodes_of(0, NodeKind::gpu).front()), 0);
  EXPECT_THAT(one.notes, Contains(HasSubstr("no NVLink or xGMI between GPUs")));
  EXPECT_EQ(one.topology.node(one.topology.nodes_of(0, NodeKind::nic).front()).port->bandwidth_bytes_per_s.value,
            12.5e9);
}

TEST(NcclCompletion, TheFilesNameAndItsCommentsNameAMachineUnlessItsGpusAreOthers) {
  EXPECT_EQ(machine_named_in("p4d-24xl-topo.xml"), "aws-p4d");
  EXPECT_EQ(machine_named_in("p5en.48xl-topo.xml"), "aws-p5en");
  EXPECT_EQ(machine_named_in("p5e.48xl-topo.xml"), "aws-p5e");
  EXPECT_EQ(machine_named_in("P5.48xl-topo.xml"), "aws-p5");
  EXPECT_EQ(machine_named_in("ndv5-topo.xml"), "azure-nd-h100-v5");
  EXPECT_EQ(machine_named_in("my hgx-h200 dump"), "hgx-h200");
  EXPECT_EQ(machine_named_in("map5.xml"), "");
  const std::string text = text_of("aws_p4d-24xl-topo.xml");
  EXPECT_THAT(imported(text, "", "p5.48xl.xml").notes, Contains(HasSubstr("as in dgx-a100-40gb")));
}

// --- What varies in such files ---

std::string system_of(const std::string& inside) {
  return "<system version=\"1\"><cpu numaid=\"-1\" affinity=\"ff\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
         "familyid=\"25\" modelid=\"1\">" +
         inside + "</cpu></system>";
}

std::string gpu(const std::string& bus, const std::string& device, const std::string& inside = "") {
  return "<pci busid=\"" + bus + "\" class=\"0x030200\" vendor=\"0x10de\" device=\"" + device +
         "\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">" + inside + "</pci>";
}

TEST(NcclCompletion, IdsTellTheProduct) {
  const Topology h200 = imported(system_of(gpu("0000:1:00.0", "0x2335") + gpu("0000:2:00.0", "0x2335"))).topology;
  const auto gpus = h200.nodes_of(0, NodeKind::gpu);
  EXPECT_EQ(h200.device(gpus[0])->name, "NVIDIA H200 SXM5 141 GB");
  EXPECT_EQ(nvlink_rate_of(h200, gpus[1]), 370.8e9);
  // Beside a gpu element too: its compute capability alone would mean an A100 of 80 GB.
  const Topology a100 = imported(system_of(gpu("0000:1:00.0", "0x20b0", "<gpu dev=\"0\" sm=\"80\"/>"))).topology;
  EXPECT_EQ(a100.device(a100.nodes_of(0, NodeKind::gpu)[0])->name, "NVIDIA A100 SXM4 40 GB");
}

TEST(NcclCompletion, AMachineOfOtherGpusIsToldApart) {
  const std::string text = system_of(gpu("0000:1:00.0", "0x20b2") + gpu("0000:2:00.0", "0x20b2"));
  const ImportedTopology other = imported(text, "hgx-h100");
  const Topology& topology = other.topology;
  EXPECT_EQ(topology.device(topology.nodes_of(0, NodeKind::gpu)[0])->name, "NVIDIA A100 SXM4 80 GB");
  EXPECT_THAT(other.notes, Contains("node.xml: GPUs are NVIDIA A100 SXM4 80 GB, and those of hgx-h100 are NVIDIA H100 "
                                    "SXM5 80 GB: links, NICs and processors that the file leaves open are taken from "
                                    "there all the same"));
  EXPECT_THAT(imported(text, "dgx-a100").notes, testing::Not(Contains(HasSubstr("all the same"))));
}

TEST(NcclCompletion, ACardsOwnSpeedComesBeforeTheMachines) {
  const auto nic = [](const std::string& device) {
    return "<pci busid=\"0000:9:00.0\" class=\"0x020000\" vendor=\"0x8086\" device=\"" + device +
           "\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/>";
  };
  const auto with = [&](const std::string& device) {
    return imported(system_of(gpu("0000:1:00.0", "0x20b2") + nic(device)), "dgx-a100");
  };
  const auto port = [](const Topology& topology) {
    return topology.node(topology.nodes_of(0, NodeKind::nic).front()).port->bandwidth_bytes_per_s.value;
  };
  const ImportedTopology known = with("0x1592"), unknown = with("0x9999");
  EXPECT_EQ(port(known.topology), 12.5e9);
  EXPECT_THAT(known.notes, Contains(HasSubstr("assumed: a port of 12.5 GB/s, the fastest of E810-C QSFP")));
  EXPECT_EQ(port(unknown.topology), 25e9);
  EXPECT_THAT(unknown.notes,
              Contains(HasSubstr("assumed: a port of 25 GB/s for the unknown NIC 8086:9999, as in dgx-a100")));
}

TEST(NcclCompletion, DisplaysOfOtherVendorsAndDisksAreNoGpus) {
  const Topology topology =
      imported(system_of(gpu("0000:1:00.0", "0x2335") +
                         "<pci busid=\"0000:3:00.0\" class=\"0x030000\" vendor=\"0x1a03\" device=\"0x2000\"/>"
                         "<pci busid=\"0000:4:00.0\" class=\"0x010802\" link_speed=\"\" link_width=\"4\"/>"))
          .topology;
  EXPECT_EQ(topology.nodes_of(0, NodeKind::gpu).size(), 1u);
  EXPECT_EQ(topology.node_count(), 3u);  // and the processor, and the NVSwitch
}

TEST(NcclCompletion, MoreGpusThanTheMachineHasAreRefused) {
  std::string gpus;
  for (int i = 10; i < 19; ++i) gpus += gpu("0000:" + std::to_string(i) + ":00.0", "0x2335");
  EXPECT_THAT(sample_refusal(system_of(gpus)),
              HasSubstr("9 GPUs, but hgx-h200 has 8; name the machine with --complete-with"));
  EXPECT_EQ(imported(system_of(gpus), "none").topology.nodes_of(0, NodeKind::gpu).size(), 9u);
}

TEST(NcclCompletion, SlicesOfACardShareItsPcieLink) {
  const ImportedTopology one =
      imported(system_of(gpu("0000:1:00.0", "0x20b2", "<gpu dev=\"0\" sm=\"80\"/><gpu dev=\"1\" sm=\"80\"/>")));
  EXPECT_EQ(way(one.topology, "w0.gpu0", "w0.gpu1"), (std::vector<std::string>{"w0.gpu0", "w0.pcie0", "w0.gpu1"}));
  EXPECT_THAT(one.notes, Contains(HasSubstr("slices of one card")));
}

TEST(NcclCompletion, SeveralSystemsAreSeveralHosts) {
  const std::string text = system_of(gpu("0000:1:00.0", "0x2335"));
  const Topology topology = imported(text + text).topology;
  EXPECT_EQ(topology.worker_count(), 2);
  EXPECT_EQ(topology.nodes_of(1, NodeKind::nvswitch).size(), 1u);
}

TEST(NcclCompletion, ProcessorsThatComeAgainWithTheirGpusAreSeveralHosts) {
  const std::string cpu = "<cpu numaid=\"0\" arch=\"arm64\" affinity=\"f\">" + gpu("0000:1:00.0", "0x2335") + "</cpu>";
  const ImportedTopology one = imported("<system version=\"1\">" + cpu + cpu + "</system>");
  EXPECT_EQ(one.topology.worker_count(), 2);
  EXPECT_THAT(one.notes, Contains(HasSubstr("taken as several hosts")));
}

// Placeholders of clouds for vendors.
TEST(NcclCompletion, VendorsOfNoneAreUnknown) {
  for (const char* vendor : {"0x0000", "0xffff"}) {
    const std::string pci = std::string("<pci busid=\"0001:00:00.0\" class=\"0x030200\" vendor=\"") + vendor +
                            "\" device=\"0x0000\" link_speed=\"32 GT/s\" link_width=\"16\"/>";
    EXPECT_EQ(imported(system_of(pci), "hgx-h100").topology.nodes_of(0, NodeKind::gpu).size(), 1u);
  }
}

TEST(NcclCompletion, GpuElementsWithoutAnArchitectureAreCompleted) {
  const std::string text =
      system_of(gpu("0000:1:00.0", "0xffff", "<gpu dev=\"1\"/>") + gpu("0000:2:00.0", "0xffff", "<gpu dev=\"0\"/>"));
  const Topology topology = imported(text, "hgx-h100").topology;
  EXPECT_EQ(nvlink_rate_of(topology, topology.nodes_of(0, NodeKind::gpu)[0]), 370.8e9);
  EXPECT_THAT(sample_refusal(text), HasSubstr("--complete-with NAME"));
}

TEST(NcclCompletion, WhatIsUnknownIsNoted) {
  const ImportedTopology one =
      imported("<system version=\"1\" made=\"today\"><cpu numaid=\"0\" arch=\"aarch64\" affinity=\"f\" color=\"red\">" +
               gpu("0000:1:00.0", "0x2342", "<gpu dev=\"0\" sm=\"90\"><c2c bw=\"44712\"/></gpu><fan/>") +
               "</cpu><power/></system>");
  EXPECT_THAT(one.notes, testing::ElementsAre("node.xml:1: unknown attribute 'made' of system, left out",
                                              "node.xml:1: unknown element 'power' in system, left out",
                                              "node.xml:1: unknown attribute 'color' of cpu, left out",
                                              "node.xml:1: unknown element 'fan' in pci, left out"));
}

TEST(NcclCompletion, UnknownSpeedsAndProcessorsAreAssumed) {
  const ImportedTopology one = imported(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:1:00.0\" class=\"0x030200\" link_speed=\"\" "
      "link_width=\"0\"><gpu dev=\"0\" sm=\"80\"/></pci></cpu><cpu numaid=\"1\"/></system>",
      "none");
  EXPECT_THAT(one.notes,
              Contains("node.xml:1: assumed: PCIe of 12 GB/s, NCCL's rate where speed and width are unknown"));
  EXPECT_THAT(one.notes, Contains(HasSubstr("assumed: 6 GB/s between processors, the slowest NCCL knows")));
}

TEST(NcclCompletion, LinksOfDifferentNumbersAreTheFewer) {
  const auto linked = [](const std::string& target, int count) {
    return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(count) + "\" tclass=\"0x030200\"/>";
  };
  const ImportedTopology one = imported(
      system_of(gpu("0000:1:00.0", "0x20b2", "<gpu dev=\"0\" sm=\"80\">" + linked("0000:2:00.0", 4) + "</gpu>") +
                gpu("0000:2:00.0", "0x20b2", "<gpu dev=\"1\" sm=\"80\">" + linked("0000:1:00.0", 2) + "</gpu>")));
  EXPECT_EQ(nvlink_rate_of(one.topology, one.topology.nodes_of(0, NodeKind::gpu)[0]), 40e9);
  EXPECT_THAT(one.notes, Contains(HasSubstr("different numbers of links")));
}

TEST(NcclCompletion, GpusWithoutANumberAreInTheOrderOfTheirBuses) {
  const Topology topology = imported(system_of(gpu("0000:9:00.0", "0x2331") + gpu("0000:1:00.0", "0x20b5"))).topology;
  EXPECT_EQ(topology.device(topology.nodes_of(0, NodeKind::gpu)[0])->name, "NVIDIA A100 PCIe 80 GB");
}

TEST(PciIds, ProductNamesOfPeople) {
  EXPECT_EQ(find_gpu_named("NVIDIA H100 80GB HBM3")->product, "NVIDIA H100 SXM5 80 GB");
  EXPECT_EQ(find_gpu_named("NVIDIA H100 PCIe")->product, "NVIDIA H100 PCIe 80 GB");
  EXPECT_EQ(find_gpu_named("NVIDIA A100-SXM4-40GB")->product, "NVIDIA A100 SXM4 40 GB");
  EXPECT_EQ(find_gpu_named("Tesla V100-SXM2-16GB")->product, "NVIDIA Tesla V100 SXM2 16 GB");
  EXPECT_EQ(find_gpu_named("h200")->product, "NVIDIA H200 SXM5 141 GB");
  EXPECT_EQ(find_gpu_named("AMD Instinct MI300X")->product, "AMD Instinct MI300X");
  EXPECT_EQ(find_gpu_named("abacus"), nullptr);
}

// Every machine that the table of ids names is in the catalog and has the GPU.
TEST(PciIds, NameMachinesOfTheCatalog) {
  for (const unsigned device : {0x102du, 0x15f9u, 0x1db5u, 0x1eb8u, 0x20b0u, 0x20b2u, 0x2237u, 0x27b8u, 0x26b9u,
                                0x2330u, 0x2335u, 0x2342u, 0x2901u, 0x2941u, 0x3182u, 0x2bb5u, 0x2b85u}) {
    const PciGpu* product = find_pci_gpu(0x10de, device);
    ASSERT_NE(product, nullptr) << device;
    const Topology machine = load_catalog_node(product->machine);
    const auto& gpu_model = machine.device(machine.nodes_of(0, NodeKind::gpu).front());
    EXPECT_EQ(gpu_model->architecture, product->architecture);
    EXPECT_TRUE(gpu_model->name.starts_with(product->product)) << product->product;
  }
}

}  // namespace
}  // namespace tandem
