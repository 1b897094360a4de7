#include "scenarios/import/traces/chakra.h"

#include <fmt/format.h>

#include "scenarios/import/import.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/chakra_bytes.h"
#include "tests/scenarios/import/import_files.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

using namespace chakra_bytes;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = TraceOp::Kind;

class Chakra : public ImportFiles {
 protected:
  RankTrace trace(const std::string& bytes, int world = 1, const ChakraGroups& groups = {}) const {
    const auto file = write("job.0.et", bytes);
    return make_chakra_trace(read_chakra_messages(file), file.string(), groups, world);
  }
  std::string problem(const std::string& bytes, int world = 1) const {
    return refusal([&] { trace(bytes, world); });
  }
  std::int64_t simulated_ns(const std::vector<std::filesystem::path>& files) const {
    const Imported imported = import_traces(files, {}, folder_);
    const Scenario scenario = parse_scenario(imported.scenario, (folder_ / "x.yaml").string());
    return run_scenario(scenario).report.summary.step_time.median;
  }
};

TEST_F(Chakra, NodesComeAfterWhatTheyDependOn) {
  // Node 1 waits for 3, which waits for 2; dependencies packed and one by one.
  const RankTrace trace =
      this->trace(kMetadata + compute(1, 10, number(5, 3)) + compute(2, 20) + sum(3, 4096, text(4, varint(2))), 2);
  ASSERT_EQ(trace.ops.size(), 3u);
  EXPECT_EQ(trace.ops[0].duration_ns, 20'000);
  EXPECT_EQ(trace.ops[1].kind, Kind::collective);
  EXPECT_EQ(trace.ops[1].bytes, 4096);
  EXPECT_THAT(trace.ops[1].after, ElementsAre(0));
  EXPECT_THAT(trace.ops[2].after, ElementsAre(1));
  EXPECT_THAT(trace.groups, ElementsAre(ElementsAre(0, 1)));
}

TEST_F(Chakra, TimesAreThoseOfTheNodes) {
  const auto file = write("job.0.et", kMetadata + compute(0, 100) + compute(1, 50, number(5, 0)));
  EXPECT_EQ(simulated_ns({file}), 150'000 + 3'500);  // what the device's model takes to synchronize
}

TEST_F(Chakra, WorkWithoutATimeTakesWhatTheDeviceNeeds) {
  // 400 GFLOP without a byte, on an H100 in f32.
  const auto file = write("job.0.et", kMetadata + compute(0, 0, attribute("num_ops", 9, 400'000'000'000)));
  const std::int64_t one = simulated_ns({file});
  EXPECT_GT(one, 1'000'000);
  const auto twice = write("job.0.et", kMetadata + compute(0, 0, attribute("num_ops", 9, 800'000'000'000)));
  EXPECT_NEAR(static_cast<double>(simulated_ns({twice})), 2.0 * static_cast<double>(one),
              0.01 * static_cast<double>(one));
}

TEST_F(Chakra, RanksMeetInCollectivesAndExchanges) {
  const auto other = [](const char* name, int type, const char* key, int rank) {
    return framed(number(1, 1) + text(2, name) + number(3, static_cast<std::uint64_t>(type)) +
                  attribute("is_cpu_op", 27, 0) + attribute("comm_size", 9, 1 << 20) +
                  attribute(key, 7, static_cast<std::uint64_t>(rank)) + number(5, 0));
  };
  const auto first =
      write("job.0.et", kMetadata + compute(0, 10) + other("s", 5, "comm_dst", 1) + sum(2, 1 << 20, number(5, 1)));
  const auto second =
      write("job.1.et", kMetadata + compute(0, 300) + other("r", 6, "comm_src", 0) + sum(2, 1 << 20, number(5, 1)));
  const std::int64_t both = simulated_ns({first, second});
  EXPECT_GT(both, 300'000);
  EXPECT_LT(both, 400'000);
}

// ASTRA-sim's "quick example": an all-gather of 1 MiB from each of 16 devices on its ring, by its analytical,
// congestion-aware network, takes 323,560 ns (its documentation; examples/network/analytical/Ring_16npus.yml,
// examples/system/native_collectives/Ring_4chunks.json). It divides the buffer into four parts, one after the other.
TEST_F(Chakra, AnAllGatherOnARingTakesWhatAstraSimSays) {
  constexpr int kRanks = 16, kParts = 4;
  constexpr double kAstraSim_ns = 323'560;
  std::string nodes = kMetadata;
  for (std::uint64_t part = 0; part < kParts; ++part) {
    nodes += framed(number(1, part) + text(2, "gather") + number(3, 7) + attribute("is_cpu_op", 27, 0) +
                    attribute("comm_type", 9, 2) + attribute("comm_size", 13, (1 << 20) / kParts) +
                    (part > 0 ? number(5, part - 1) : ""));
  }
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < kRanks; ++rank) files.push_back(write(fmt::format("job.{}.et", rank), nodes));
  const std::string network = "topology: [ Ring ]\nnpus_count: [ 16 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";
  const Imported imported = import_traces(files, {}, folder_);
  Scenario scenario = parse_scenario(imported.scenario, (folder_ / "x.yaml").string());
  Topology ring = import_text(network, "Ring_16npus.yml", {.gpu = "a100"}).topology;
  ring.replace_devices([](NodeKind, const DeviceModel& model) {
    DeviceModel without_nccl = model;
    without_nccl.architecture.clear();  // whose costs ASTRA-sim does not count
    return std::make_shared<const DeviceModel>(without_nccl);
  });
  scenario.topology = std::make_shared<const Topology>(std::move(ring));
  scenario.devices.workers = 1;
  scenario.devices.per_worker = kRanks;
  scenario.engine.collectives = CollectiveFidelity::message;
  const Report report = run_scenario(scenario).report;
  double gathers_ns = 0;
  for (const CollectiveSummary& collective : report.summary.collectives) {
    EXPECT_EQ(collective.devices, kRanks);
    gathers_ns += static_cast<double>(collective.time_ns) * collective.calls_per_step;
  }
  EXPECT_NEAR(gathers_ns, kAstraSim_ns, 0.02 * kAstraSim_ns);
}

TEST_F(Chakra, GroupsComeFromAFileOfTheirOwn) {
  const std::string of_group = text(10, text(1, "pg_name") + text(29, "7"));
  const auto nodes = kMetadata + sum(0, 4096, of_group);
  const RankTrace trace = this->trace(nodes, 4, {{"7", {2, 0}}});
  EXPECT_THAT(trace.groups, ElementsAre(ElementsAre(0, 2)));
  EXPECT_THAT(this->trace(nodes, 4).notes, ElementsAre(HasSubstr("1 collectives name a group")));
  EXPECT_EQ(refusal([&] {
              this->trace(nodes, 4, {{"8", {0, 1}}});
            }),
            "job.0.et:byte 9: node 0 ('sum') is of the group '7', which the file of groups does not have");
  EXPECT_THAT(refusal([&] { this->trace(nodes, 4, {{"7", {1, 2}}}); }), HasSubstr("rank 0 among them"));
  EXPECT_EQ(read_chakra_groups(write("g.json", "{\"7\": [0, 1]}")), (ChakraGroups{{"7", {0, 1}}}));
  EXPECT_EQ(refusal([&] { read_chakra_groups(write("g.json", "{\"7\": [0, -1]}")); }),
            "g.json:1:11: 7: expected the numbers of ranks");
}

TEST_F(Chakra, JsonHasTheSameNodes) {
  const auto file = write("job.0.json", R"({"workload_graph": [
    {"Id": 0, "Name": "a", "NodeType": 4, "is_cpu_op": false, "runtime": 5, "data_deps": []},
    {"Id": 1, "Name": "b", "NodeType": 7, "is_cpu_op": false, "comm_type": 2, "comm_size": 100, "ctrlDeps": [0]},
    {"Id": 2, "Name": "nccl", "NodeType": 7, "is_cpu_op": false, "runtime": 9, "data_deps": [1, 99]}]})");
  const RankTrace trace = make_chakra_trace(read_chakra_json(file), file.string(), {}, 2);
  EXPECT_EQ(trace.kernel_ns(), 14'000);
  EXPECT_EQ(trace.collective_bytes(CollectiveKind::all_gather), 200);
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("1 dependencies are on nodes that are not in the file"),
                                       HasSubstr("1 collectives say no operation or size")));
  EXPECT_EQ(refusal([&] { read_chakra_json(write("x.json", R"({"workload_graph": [{"Name": "a"}]})")); }),
            "x.json:1:21: a node has no Id");
  EXPECT_EQ(refusal([&] { read_chakra_json(write("x.json", R"({"workload_graph": [{"Id": -1}]})")); }),
            "x.json:1:28: expected a number from 0 to 10^15");
}

TEST_F(Chakra, RanksAreInTheNamesOfFiles) {
  EXPECT_EQ(rank_of_file("a/job.3.et"), 3);
  EXPECT_EQ(rank_of_file("job.12.et.gz"), 12);
  EXPECT_EQ(rank_of_file("job.et"), -1);
  EXPECT_EQ(refusal([&] {
              read_traces({write("a.et", kMetadata + compute(0, 1)), write("b.et", kMetadata)});
            }),
            "a.et:byte 0: its name has no rank: expected a number before the ending, as in 'job.3.et'");
}

TEST_F(Chakra, AFileAloneStandsForTheRanksBesideIt) {
  std::vector<std::filesystem::path> files;
  for (const int rank : {0, 2, 10}) files.push_back(write(fmt::format("job.{}.et", rank), kMetadata + sum(0, 1 << 20)));
  write("other.1.et", kMetadata + compute(0, 5));
  write("job.1.json", "{}");
  EXPECT_EQ(files_of_ranks(files[1]), files);
  EXPECT_EQ(files_of_ranks(folder_ / "other.1.et").size(), 1u);
  const Imported imported = import_traces({files[1]}, {}, folder_);
  EXPECT_THAT(imported.scenario, testing::AllOf(HasSubstr("\"job.0.et\""), HasSubstr("\"job.10.et\"")));
  EXPECT_THAT(imported.assumed,
              testing::Contains("2 files of other ranks by their names, job.0.et to job.10.et, are read, too"));
  EXPECT_THAT(import_traces({files[0], files[1]}, {}, folder_).assumed,
              testing::Contains("1 files of other ranks by their names, job.10.et to job.10.et, are not given and left "
                                "out"));
}

TEST_F(Chakra, CollectivesOfAJobOfUnknownSizeAreNotFree) {
  const auto file = write("job.0.et", kMetadata + sum(0, 1 << 20));
  const std::string unknown =
      "job.0.et:byte 0: has 1 collectives among all ranks of its job and is its only file, so nothing says how many "
      "ranks are "
      "missing: give the files of all ranks, or their number (import: --devices, --workers; scenario: `ranks`)";
  EXPECT_EQ(refusal([&] { import_traces({file}, {}, folder_); }), unknown);
  const auto time_ns = [&](const ImportChoices& choices) {
    const Imported imported = import_traces({file}, choices, folder_);
    return run_scenario(parse_scenario(imported.scenario, (folder_ / "x.yaml").string()))
        .report.summary.step_time.median;
  };
  const std::int64_t four = time_ns({.devices = 4});
  EXPECT_GT(time_ns({.devices = 4, .workers = 2}), four);
  for (int rank = 1; rank < 4; ++rank) write(fmt::format("job.{}.et", rank), kMetadata + sum(0, 1 << 20));
  EXPECT_EQ(time_ns({}), four);
  EXPECT_EQ(refusal([&] {
              read_traces({file, folder_ / "job.1.et"}, 1);
            }),
            "job.0.et:byte 0: is of a job of 2 ranks, and `ranks` is 1");
  // Work without collectives needs no other ranks, and groups say which there are.
  const auto silent = write("alone.0.et", kMetadata + compute(0, 5));
  EXPECT_EQ(refusal([&] { read_traces({silent}); }), "");
  const auto grouped = write("grouped.0.et", kMetadata + sum(0, 4096, text(10, text(1, "pg_name") + text(29, "7"))));
  EXPECT_EQ(read_traces({grouped, write("groups.json", "{\"7\": [0, 1]}")})->front().world, 2);
}

TEST_F(Chakra, BrokenFilesAreRefused) {
  const std::string good = kMetadata + compute(0, 5);
  EXPECT_EQ(problem(kMetadata), "job.0.et:byte 0: has no nodes");
  EXPECT_EQ(problem(good + compute(0, 5)), "job.0.et:byte 38: has two nodes of id 0");
  EXPECT_EQ(problem(kMetadata + compute(0, 5, number(5, 1)) + compute(1, 5, number(5, 0))),
            "job.0.et:byte 9: has a cycle: node 0 ('gemm') waits for itself, directly or by others");
  EXPECT_EQ(problem(kMetadata + compute(0, 5, number(4, 0))),
            "job.0.et:byte 9: has a cycle: node 0 ('gemm') waits for itself, directly or by others");
  EXPECT_EQ(problem(good.substr(0, good.size() - 3)),
            "job.0.et:byte 8: a message of 28 bytes ends beyond the file: is no Chakra trace, or a damaged one");
  EXPECT_EQ(problem(kMetadata + varint(std::uint64_t{1} << 40)),
            "job.0.et:byte 8: a message of 1099511627776 bytes: is no Chakra trace, or a damaged one");
  EXPECT_EQ(problem(kMetadata + std::string(12, '\xff')),
            "job.0.et:byte 8: a length has more than nine bytes: is no Chakra trace, or a damaged one");
  EXPECT_THAT(problem(kMetadata + framed(number(1, 0) + "\x12\x7f"
                                                        "ab")),
              HasSubstr("a field of 127 bytes ends beyond its message"));
  EXPECT_THAT(problem(kMetadata + framed("\x0b")), HasSubstr("a field has the unknown form 3"));
  EXPECT_THAT(problem(kMetadata + framed(std::string(1, '\0'))), HasSubstr("a field has no number"));
  EXPECT_THAT(problem(kMetadata + compute(0, std::uint64_t{1} << 63)),
              HasSubstr("'duration_micros' must be 0 or from 1 fs to 1 day, found 9.2"));
  EXPECT_THAT(problem(kMetadata + framed(number(1, 0) + number(3, 9))),
              HasSubstr("node 0 ('') is of the unknown type 9"));
  EXPECT_THAT(problem(kMetadata + framed(number(1, 0) + number(3, 5) + attribute("comm_dst", 9, 4)), 2),
              HasSubstr("exchanges with rank 4: there are the ranks 0 to 1, and this is rank 0"));
}

TEST_F(Chakra, KindsAreNotMixed) {
  const auto chakra = write("job.0.et", kMetadata + compute(0, 5));
  const auto kineto =
      write("k.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 2}]})");
  EXPECT_EQ(refusal([&] {
              read_traces({chakra, kineto});
            }),
            "job.0.et:byte 0: is a trace of Chakra, and k.json is one of PyTorch's profiler");
  EXPECT_THAT(refusal([&] { read_traces({write("et.json", R"({"schema": "1.1.0-chakra.0.0.4", "nodes": []})")}); }),
              HasSubstr("has operators of the host and no times of the device"));
  EXPECT_EQ(refusal([&] { read_traces({write("g.json", "{\"1\": [0]}")}); }),
            "g.json:1:1: has groups of ranks: give the traces, too");
}

}  // namespace
}  // namespace tandem
