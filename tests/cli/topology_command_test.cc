#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

double memory_of_this_machine() {
  std::ifstream stream("/proc/meminfo");
  std::string name;
  double kibibytes = 0;
  stream >> name >> kibibytes;
  return name == "MemTotal:" ? kibibytes * 1024 : 0;
}

class TopologyCommand : public CommandLine {
 protected:
  static std::string sample(const std::string& name) {
    return TANDEM_SOURCE_DIR "/tests/topologies/samples/nccl/" + name;
  }
  // The scenario of an all-reduce on two GPUs of a topology file.
  std::string write_scenario(const std::string& topology) const {
    return write("reduce.yaml", R"(schema_version: 1
name: reduce
workload: {kind: layers, model: resnet50, batch: 16, dtype: f32}
strategy: {name: mirrored, cross_device_ops: nccl}
engine: {name: sim}
topology: )" + topology + R"(
devices: {type: gpu, per_worker: 2}
steps: 4
warmup_steps: 1
)");
  }
};

TEST_F(TopologyCommand, ShowsAMachineOfTheCatalogAndDrawsIt) {
  const Outcome outcome = tandem({"topology", "show", "hgx-h100", "--svg", "h100.svg"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Paths, with the GB/s of the narrowest link"));
  EXPECT_THAT(read("h100.svg"), HasSubstr("<title>hgx-h100</title>"));
  const Outcome as_json = tandem({"topology", "show", "hgx-h100", "--json"});
  EXPECT_EQ(as_json.json()["bisection_bytes_per_s"], 1505200000000.0);
  EXPECT_EQ(as_json.json()["paths"].size(), 16u * 15u);
}

TEST_F(TopologyCommand, NamesTheOddMachineOfACluster) {
  const std::string file = write("odd.yaml",
                                 "schema_version: 1\ncluster: {node: hgx-h100, workers: 32, fabric: rail, overrides: "
                                 "{w3.nic5: {slowdown: 4}}}\n");
  EXPECT_THAT(tandem({"topology", "show", file}).out,
              HasSubstr("\n  w0..w2, w4..w31: 8 GPUs, 8 NICs, 2 processors\n  w3: 8 GPUs, 8 NICs, 2 processors\n    "
                        "nic5: 12.5 GB/s (usual: 50)\n"));
  const auto groups = tandem({"topology", "show", file, "--json"}).json()["groups"];
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0]["machines"], "w0..w2, w4..w31");
  EXPECT_EQ(groups[0]["count"], 31);
  EXPECT_EQ(groups[1]["odd"][0], "nic5: 12.5 GB/s (usual: 50)");
  const std::string one =
      write("one.yaml", "schema_version: 1\nbased_on: hgx-h100\noverrides: {nic5: {slowdown: 4}}\n");
  const Outcome check = tandem({"topology", "check", one});
  EXPECT_EQ(check.exit_code, 1);
  EXPECT_THAT(check.out, HasSubstr("implausible: 'nic5' has 12.5 GB/s of network, its twin 'nic0' 50\n"));
}

// Every file that people have runs an all-reduce on the simulated engine.
TEST_F(TopologyCommand, EverySampleRuns) {
  for (const auto& entry : fs::directory_iterator(sample(""))) {
    const Outcome outcome = tandem({"run", write_scenario(entry.path().string()), "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << entry.path() << outcome.err;
    EXPECT_GT(outcome.json()["step_time_ns"]["median"].get<double>(), 0) << entry.path();
  }
}

TEST_F(TopologyCommand, APartialFileIsCompletedWhereItIsUsed) {
  fs::copy_file(sample("azure_ndv2-topo.xml"), folder() / "node.xml");
  const Outcome refused = tandem({"topology", "show", "node.xml"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("--complete-with NAME (in YAML: complete_with: NAME)"));
  const Outcome shown = tandem({"topology", "show", "node.xml", "--complete-with", "azure-nd-v2"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.err,
              HasSubstr("note: node.xml: assumed: links between 8 GPUs, 132 GB/s for each, as in azure-nd-v2"));
  EXPECT_THAT(tandem({"topology", "show", "node.xml", "--complete-with", "azure-nd-v2", "-q"}).err, IsEmpty());
  const std::string scenario = write_scenario("{cluster: {node: ./node.xml, complete_with: azure-nd-v2, workers: 1}}");
  EXPECT_EQ(tandem({"run", scenario}).exit_code, 0);
  const std::string plain = write_scenario("hgx-h100");
  EXPECT_EQ(tandem({"run", plain, "--topology", "node.xml"}).exit_code, 3);
  EXPECT_EQ(tandem({"run", plain, "--topology", "node.xml", "--complete-with", "azure-nd-v2"}).exit_code, 0);
  EXPECT_EQ(tandem({"collectives", "--topology", "node.xml", "-b", "1M", "-e", "1M"}).exit_code, 3);
  EXPECT_EQ(
      tandem({"collectives", "--topology", "./node.xml", "--complete-with", "azure-nd-v2", "-b", "1M", "-e", "1M"})
          .exit_code,
      0);
  const Outcome unknown = tandem({"topology", "show", "node.xml", "--complete-with", "azure-nd-v3"});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'azure-nd-v2'?"));
}

TEST_F(TopologyCommand, NamesOptionsForPartialFilesWhereNothingIsMissing) {
  const Outcome shown = tandem({"topology", "show", "hgx-h100", "--gpu", "h200", "--complete-with", "dgx-a100"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.err, "note: has no effect here: --gpu, --complete-with: the description lacks nothing\n");
  const Outcome refused = tandem({"run", write_scenario("{cluster: {node: hgx-h100, gpu: h200, workers: 1}}")});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("topology.cluster.node: lacks nothing: `gpu` and `complete_with` are for"));
}

TEST_F(TopologyCommand, WhatIsConvertedReadsBack) {
  ASSERT_EQ(tandem({"topology", "convert", sample("aws_p4d-24xl-topo.xml"), "-o", "node.yaml"}).exit_code, 0);
  EXPECT_THAT(read("node.yaml"), HasSubstr("# " + sample("aws_p4d-24xl-topo.xml") + ": assumed: links between 8 GPUs"));
  const Outcome before = tandem({"topology", "show", sample("aws_p4d-24xl-topo.xml"), "--json"});
  const Outcome after = tandem({"topology", "show", "node.yaml", "--json"});
  EXPECT_EQ(before.json()["paths"], after.json()["paths"]);
  for (const char* format : {"dot", "graphml", "simgrid"}) {
    EXPECT_EQ(tandem({"topology", "convert", "node.yaml", "--format", format, "-o", "t"}).exit_code, 0);
    EXPECT_THAT(read("t"), HasSubstr("w0.nvswitch0")) << format;
  }
}

TEST_F(TopologyCommand, DetectsThisMachine) {
  const Outcome outcome = tandem({"topology", "detect", "-o", "here.yaml"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Outcome shown = tandem({"topology", "show", "here.yaml"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("cores"));
  EXPECT_THAT(
      read("here.yaml"),
      testing::ContainsRegex("memory: \\{value: [0-9.]+[kMGT]?B, provenance: vendor, source: \"in this machine"));
  if (!fs::exists("/sys/devices/system/node/node1")) {
    EXPECT_THAT(read("here.yaml"), HasSubstr(fmt::format("memory: {{value: {}GB,", memory_of_this_machine() / 1e9)));
  }
  EXPECT_EQ(tandem({"topology", "show"}).exit_code, 2);
}

TEST_F(TopologyCommand, ChecksAFile) {
  const Outcome good = tandem({"topology", "check", "dgx-a100"});
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_EQ(good.out, "dgx-a100: 0 implausible, 0 missing, 0 notes\n");
  const Outcome odd = tandem({"topology", "check", sample("rccl_topo_4p3l.xml"), "--json"});
  EXPECT_EQ(odd.exit_code, 0) << odd.out;
}

// Each ends at once with one message.
TEST_F(TopologyCommand, RefusesWhatIsNoTopology) {
  fs::create_directory(folder() / "folder.xml");
  ASSERT_EQ(mkfifo((folder() / "pipe.xml").c_str(), 0600), 0);
  std::string deep = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 1'000'000; ++i) deep += "<pci>";
  write("deep.xml", deep);
  write("entities.xml",
        "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>\n<system "
        "version=\"1\">&b;</system>\n");
  write("empty.xml", "<");
  write("huge.xml", "<system version=\"1\">" + std::string(17 << 20, ' ') + "</system>");
  for (const auto& [file, message] : {std::pair{"folder.xml", "is a folder"},
                                      {"pipe.xml", "is a named pipe, expected a file"},
                                      {"deep.xml", "not valid XML"},
                                      {"entities.xml", "declares entities, which are not read"},
                                      {"empty.xml", "not valid XML"},
                                      {"huge.xml", "larger than 16 MiB"},
                                      {"nowhere.xml", "no such topology file"},
                                      {"hgx-h10", "did you mean 'hgx-h100'?"}}) {
    const Outcome outcome = tandem({"topology", "show", file});
    EXPECT_EQ(outcome.exit_code, 3) << file;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

}  // namespace
}  // namespace tandem
