// Files of measurements, the rules that sort them, and what each protocol fits and predicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scenarios/measurements/measurement_file.h"
#include "scenarios/validation/protocols.h"
#include "scenarios/validation/rules.h"
#include "scenarios/validation/validate.h"
#include "tests/reports/corpus.h"

namespace tandem::validation {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
const fs::path kMeasurements = TANDEM_SOURCE_DIR "/tests/validation";

class BrokenMeasurements : public testing::TestWithParam<fs::path> {};

TEST_P(BrokenMeasurements, ReportExactlyWhatIsWrong) {
  expect_problems(GetParam(), [](const std::string& text, const std::string& file) { parse_measurements(text, file); });
}

INSTANTIATE_TEST_SUITE_P(Validation, BrokenMeasurements,
                         testing::ValuesIn(corpus_files(TANDEM_SOURCE_DIR "/tests/scenarios/broken_measurements")),
                         corpus_name);

std::string file_with(const std::string& topology, const std::string& more = "") {
  return R"({"collective": "all_reduce", "dtype": "half", "hardware": {"gpu": "H100", "gpus_per_node": 8},)"
         R"( "software": {"nccl_version": "2.27.3+cuda12"}, )" +
         more + R"("topology": )" + topology +
         R"(, "rows": [{"bytes": 0, "time_us_out_of_place": 5}, {"bytes": 1024, "time_us_out_of_place": 20.1,)"
         R"( "time_us_in_place": 20.2}, {"bytes": 2048, "time_us_in_place": 21}]})";
}

MeasuredTable only_table(const std::string& text) {
  const MeasurementFile file = parse_measurements(text, "made up");
  EXPECT_EQ(file.tables.size(), 1u);
  return file.tables.at(0);
}

TEST(MeasurementFile, HasRowsAsObjects) {
  const MeasuredTable measured = only_table(file_with(R"({"node": "hgx-h100"})"));
  EXPECT_EQ(measured.table.operation, "all_reduce");
  EXPECT_EQ(measured.table.dtype, "half");
  EXPECT_EQ(measured.table.devices, 8);
  EXPECT_EQ(measured.table.nccl_version, "2.27.3");
  ASSERT_EQ(measured.table.rows.size(), 2u);  // none of 0 bytes
  EXPECT_EQ(measured.table.rows[0].bytes, 1024);
  EXPECT_EQ(measured.table.rows[0].out_of_place_us, 20.1);
  EXPECT_EQ(measured.table.rows[1].time_us(), 21);
  ASSERT_TRUE(measured.machine.has_value());
  EXPECT_EQ(measured.machine->family(), "hgx-h100");
  EXPECT_EQ(measured.machine->topology->worker_count(), 1);
}

TEST(MeasurementFile, HasTablesWithColumns) {
  const MeasurementFile file = parse_measurements(
      R"({"healthy": false, "topology": {"node": "hgx-h100", "nodes": 2}, "tables": [
          {"collective": "alltoall", "gpus": 16, "columns": ["message_size_elements", "bytes", "time_us"],
           "rows": [[256, 512, 5.31], [512, 1024, 5.24]]},
          {"collective": "all_reduce", "columns": ["bytes", "processors", "nodes", "time_ms", "algorithm"],
           "topology": {"node": "dgx1-v100"},
           "rows": [[400, 2, null, 0.5, "NCCL 2.0"], [400, 4, null, 0.6, "NCCL 2.0"], [800, 4, null, 0.7, "Ring"],
                    [800, 16, 2, 0.9, "NCCL 2.0"]]}]})",
      "made up");
  EXPECT_FALSE(file.healthy);
  ASSERT_EQ(file.tables.size(), 3u);
  EXPECT_EQ(file.tables[0].table.operation, "all_to_all");
  EXPECT_EQ(file.tables[0].machine->family(), "hgx-h100, 2 nodes");
  EXPECT_EQ(file.tables[0].machine->topology->worker_count(), 2);
  EXPECT_EQ(file.tables[1].table.devices, 2);
  EXPECT_EQ(file.tables[1].machine->node, "dgx1-v100");
  EXPECT_EQ(file.tables[1].table.rows.at(0).time_us(), 500);
  EXPECT_EQ(file.tables[2].table.devices, 4);
  EXPECT_EQ(file.tables[2].table.rows.size(), 1u);  // not another library's, nor another number of nodes
}

// 8 devices: the factor of an all-reduce is 7/4.
TEST(MeasurementFile, HasTimesFromBandwidths) {
  const auto file_of = [](const std::string& rows) {
    return parse_measurements(
        R"({"collective": "allreduce", "gpus": 8, "topology": {"node": "hgx-h100"}, "rows": [)" + rows + "]}",
        "made up");
  };
  const MeasurementFile file =
      file_of(R"({"bytes": 1048576, "algbw": 10.5}, {"bytes": 2097152, "busbw": 35, "algbw_in_place": 20.25},)"
              R"( {"bytes": 64, "algbw": 0.01}, {"bytes": 4194304, "time_us": 90, "busbw": 1})");
  const std::vector<CollectiveRow>& read = file.tables.at(0).table.rows;
  ASSERT_EQ(read.size(), 3u);
  EXPECT_DOUBLE_EQ(read[0].time_us(), 1048576 / 10.5e3);
  EXPECT_FALSE(read[0].in_place_us.has_value());
  EXPECT_DOUBLE_EQ(read[1].out_of_place_us.value(), 2097152 / 20e3);
  EXPECT_DOUBLE_EQ(read[1].in_place_us.value(), 2097152 / 20.25e3);
  EXPECT_EQ(read[2].time_us(), 90) << "a time comes first";
  EXPECT_THAT(file.notes,
              testing::ElementsAre("all_reduce: rows left out whose bandwidths have too few digits for a time: 1"));
  EXPECT_THAT(file_of(R"({"bytes": 64, "algbw": 1.25e-3})").notes, testing::IsEmpty()) << "as many digits as it needs";
}

TEST(MeasurementFile, TakesTheUsualSpellingsOfCollectives) {
  const auto operation = [](const std::string& word) {
    return only_table(R"({"collective": ")" + word +
                      R"(", "gpus": 8, "topology": {"node": "hgx-h100"}, "rows": [{"bytes": 1024, "time_us": 20}]})")
        .table.operation;
  };
  for (const char* word : {"send_recv", "sendrecv", "sendrecv_perf", "SendRecv", "send_receive", "send-recv"}) {
    EXPECT_EQ(operation(word), "send_receive") << word;
  }
  for (const char* word : {"alltoall", "all_to_all", "alltoall_perf", "AllToAll", "all2all"}) {
    EXPECT_EQ(operation(word), "all_to_all") << word;
  }
  for (const char* word : {"allreduce", "all_reduce_perf", "AllReduce", "ncclAllReduce", "ALLREDUCE"}) {
    EXPECT_EQ(operation(word), "all_reduce") << word;
  }
  EXPECT_EQ(operation("reducescatter"), "reduce_scatter");
  EXPECT_EQ(operation("bcast"), "broadcast");
  EXPECT_EQ(operation("barrier"), "barrier") << "none of Tandem's";
}

int nics_of(const std::string& topology) {
  const ReplayMachine machine = *only_table(file_with(topology)).machine;
  int links = 0;  // of NICs to the fabric
  for (LinkIndex i = 0; i < machine.topology->link_count(); ++i) {
    const Link& link = machine.topology->link(i);
    const bool is_cable = machine.topology->node(link.from).worker != machine.topology->node(link.to).worker;
    if (is_cable) ++links;
  }
  return links / machine.nodes;
}

TEST(MeasurementFile, SaysWhichNicsWereUsed) {
  EXPECT_EQ(nics_of(R"({"node": "hgx-h100", "nodes": 2})"), 8);
  EXPECT_EQ(nics_of(R"({"node": "hgx-h100", "nodes": 2, "nics": 4})"), 4);
  EXPECT_EQ(nics_of(R"({"node": "hgx-h100", "nodes": 2, "nics": ["nic1", "nic6", "nic7"]})"), 3);
  EXPECT_EQ(nics_of(R"({"node": "hgx-h100", "nics": 4})"), 0);
}

TEST(Rules, LookAtWhatAFileStates) {
  const auto left_out = [](const std::string& text) {
    const MeasurementFile file = parse_measurements(text, "made up");
    return left_out_by(file, file.tables.at(0));
  };
  EXPECT_EQ(left_out(file_with(R"({"node": "hgx-h100"})")), "");
  EXPECT_EQ(left_out(file_with(R"({"node": "hgx-h100"})", R"("healthy": "unknown", )")), "");
  EXPECT_EQ(left_out(file_with(R"({"node": "hgx-h100"})", R"("healthy": false, )")),
            "the machine was not healthy, by its publisher's words");
  EXPECT_EQ(left_out(file_with(R"({"lacks": "the GPU"})")), "does not state the GPU");
  EXPECT_EQ(left_out(file_with("null")), "does not state a 'topology'");
}

TEST(Rules, SayWhatIsReportedApart) {
  const auto apart = [](const std::string& topology) { return apart_by(*only_table(file_with(topology)).machine); };
  EXPECT_EQ(apart(R"({"node": "hgx-h100"})"), "");
  EXPECT_EQ(apart(R"({"node": "hgx-h100", "devices_per_process": 8})"), "several devices a process");
  EXPECT_EQ(apart(R"({"node": "hgx-h100", "p2p": false})"), "no P2P");
  EXPECT_EQ(apart(R"({"node": "l40s-8gpu", "p2p_stated": false})"), "P2P not stated");
  EXPECT_EQ(apart(R"({"node": "hgx-h100", "nics_stated": false})"), "");  // no NIC is used
  EXPECT_EQ(apart(R"({"node": "hgx-h100", "nodes": 2, "nics_stated": false})"), "NICs not stated");
  EXPECT_EQ(apart(R"({"node": "hgx-h100", "nodes": 2, "fabric": {"kind": "switch", "transport": "roce"}})"), "");
  EXPECT_EQ(apart(R"({"node": "hgx-h100", "nodes": 2, "fabric": {"kind": "switch", "transport": "tcpx"}})"),
            "network: tcpx");
}

// Times that follow 10 us + bytes / (devices GB/s), where the model is wrong by a factor.
ReplayedTable made_up_table(int devices, double model_factor, int nodes = 1) {
  ReplayedTable table;
  table.file = "made up";
  table.node = "hgx-h100";
  table.family = nodes == 1 ? "hgx-h100" : "hgx-h100, 2 nodes";
  table.operation = "all_reduce";
  table.dtype = "float";
  table.devices = devices;
  table.nodes = nodes;
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 26; bytes *= 2) {
    const double time_us = 10 + static_cast<double>(bytes) / (1e3 * devices);
    table.rows.push_back({bytes, time_us, time_us * model_factor, "ring"});
  }
  return table;
}

TEST(Protocols, LinksFitNothing) {
  const auto points = predict(Protocol::links, {made_up_table(8, 1.5)});
  ASSERT_EQ(points.size(), 7u);
  for (const ValidationPoint& point : points) {
    EXPECT_NEAR(point.error(), 0.5, 1e-12);
    EXPECT_EQ(point.basis, "links");
  }
}

TEST(Protocols, SizesPredictEveryOtherSize) {
  const auto points = predict(Protocol::sizes, {made_up_table(8, 1.5)});
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].bytes, 2 << 20);
  EXPECT_EQ(points[1].bytes, 8 << 20);
  for (const ValidationPoint& point : points) {
    EXPECT_NEAR(point.error(), 0, 1e-9);  // both a line and a constant residual are exact here
    EXPECT_EQ(point.basis, "interpolated");
  }
}

TEST(Protocols, RanksNeedTwoSmallerCountsWhereThereAreSome) {
  const auto points = predict(Protocol::ranks,
                              {made_up_table(2, 2), made_up_table(4, 2), made_up_table(8, 2), made_up_table(16, 2, 2)});
  ASSERT_EQ(points.size(), 7u);
  for (const ValidationPoint& point : points) EXPECT_EQ(point.devices, 8);
  EXPECT_EQ(predict(Protocol::ranks, {made_up_table(2, 2), made_up_table(4, 2)}).size(), 7u);
  EXPECT_TRUE(predict(Protocol::ranks, {made_up_table(8, 2)}).empty());
}

TEST(Protocols, NodesTakeTheResidualOfOneNode) {
  const auto points = predict(Protocol::nodes, {made_up_table(8, 2), made_up_table(16, 2, 2)});
  ASSERT_EQ(points.size(), 7u);
  for (const ValidationPoint& point : points) {
    EXPECT_EQ(point.nodes, 2);
    EXPECT_THAT(point.basis, HasSubstr("1 node"));
    EXPECT_NEAR(point.error(), 0, 1e-9);
  }
  EXPECT_TRUE(predict(Protocol::nodes, {made_up_table(16, 2, 2)}).empty());
}

class ValidateFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tandem-validation-" + std::to_string(getpid()));
    fs::create_directories(folder_ / "deeper");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  fs::path folder_;
};

TEST_F(ValidateFolder, ReplaysEveryFileInTheOrderOfTheirNames) {
  write("b.json", file_with(R"({"node": "hgx-h100"})"));
  write("deeper/a.json", file_with(R"({"node": "dgx-a100"})"));
  write("a.json", file_with(R"({"lacks": "the GPU"})"));
  write("other.json", R"({"results": []})");
  write("notes.txt", "no measurement");
  const Validation validation = validate_folder(folder_, Protocol::links);
  ASSERT_EQ(validation.points.size(), 4u);
  EXPECT_EQ(validation.points[0].file, "b.json");
  EXPECT_EQ(validation.points[0].measured_us, 20.1);
  EXPECT_GT(validation.points[0].predicted_us, 0);
  EXPECT_EQ(validation.points[2].file, "deeper/a.json");
  ASSERT_EQ(validation.left_out.size(), 2u);
  EXPECT_EQ(validation.left_out[1].file, "a.json");
  const auto json = validation_json(validation);
  EXPECT_EQ(json["points"].size(), 4u);
  for (const char* key : {"file", "collective", "devices", "nodes", "bytes", "measured_us", "predicted_us", "basis"}) {
    EXPECT_TRUE(json["points"][0].contains(key)) << key;
  }
  EXPECT_EQ(validation_json(validate_folder(folder_, Protocol::links)), json);
  const std::string text = validation_text(validation);
  EXPECT_THAT(text, HasSubstr("hgx-h100"));
  EXPECT_THAT(text, HasSubstr("left out: 2\n"));
}

TEST_F(ValidateFolder, ReportsTheProblemsOfAllFiles) {
  write("a.json", file_with(R"({"node": "hgx-h10"})"));
  write("b.json", R"({"collective": "all_reduce", "rows": [)");
  try {
    validate_folder(folder_, Protocol::links);
    FAIL() << "two broken files were accepted";
  } catch (const InputError& error) {
    ASSERT_EQ(error.diagnostics().size(), 2u);
    EXPECT_THAT(error.diagnostics()[0].message, HasSubstr("did you mean 'hgx-h100'?"));
    EXPECT_THAT(error.diagnostics()[1].file, HasSubstr("b.json"));
  }
  EXPECT_THROW(validate_folder(folder_ / "nowhere", Protocol::links), InputError);
  EXPECT_THROW(validate_folder(folder_ / "deeper", Protocol::links), InputError);
}

TEST(OpenSet, NamesAMachineOrSaysWhatItLacks) {
  int tables = 0;
  for (const auto& entry : fs::directory_iterator(kMeasurements / "collectives")) {
    if (entry.path().extension() != ".json") continue;  // a machine
    const MeasurementFile file = parse_measurements(read_input_file(entry.path()), entry.path().string());
    for (const MeasuredTable& table : file.tables) {
      EXPECT_TRUE(table.machine.has_value() || !table.lacks.empty()) << entry.path();
      EXPECT_NE(table.lacks, "a 'topology'") << entry.path();
      ++tables;
    }
  }
  EXPECT_GT(tables, 0);
}

}  // namespace
}  // namespace tandem::validation
