#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "reports/errors/error_interval.h"
#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ValidateCommand : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    std::string rows;
    for (int bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
      rows += (rows.empty() ? "" : ", ") + ("{\"bytes\": " + std::to_string(bytes)) + ", \"time_us_out_of_place\": 20}";
    }
    write("table.json", R"({"collective": "all_reduce", "dtype": "float", "gpus": 8, "topology": {"node": "hgx-h100"},)"
                        R"( "rows": [)" +
                            rows + "]}");
  }
};

TEST_F(ValidateCommand, ShowsTheErrorsOfAFolder) {
  const Outcome outcome = tandem({"validate", "."});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("protocol links: absolute errors in percent"));
  EXPECT_THAT(outcome.out, HasSubstr("one node"));
  EXPECT_THAT(outcome.out, HasSubstr("hgx-h100"));
  EXPECT_THAT(tandem({"validate", ".", "--summary"}).out, testing::Not(HasSubstr("hgx-h100")));
}

TEST_F(ValidateCommand, ListsTheFilesOfThePointsBeyondALimit) {
  write("wrong.json",
        R"({"collective": "all_reduce", "dtype": "float", "gpus": 8, "topology": {"node": "hgx-h100"},)"
        R"( "rows": [{"bytes": 1024, "time_us_out_of_place": 2}, {"bytes": 2048, "time_us_out_of_place": 1e6},)"
        R"( {"bytes": 1073741824, "time_us_out_of_place": 1e6}]})");
  const Outcome outcome = tandem({"validate", ".", "--beyond", "90"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("protocol links: 3 of 9 points are off by more than 90 %"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("wrong.json  all_reduce  <= 32 KiB +2 +2 +-100.0 +\\+[0-9]"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("wrong.json  all_reduce  > 64 MiB +1 +1 +-99"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("table.json")));
  EXPECT_THAT(tandem({"validate", ".", "--beyond", "1e9"}).out, HasSubstr(": 0 of 9 points"));
  EXPECT_EQ(tandem({"validate", ".", "--beyond", "0"}).exit_code, 2);
  EXPECT_EQ(tandem({"validate", ".", "--beyond", "35", "--summary"}).exit_code, 2);
}

TEST_F(ValidateCommand, SaysWhyAProtocolHasNothingToPredict) {
  const Outcome ranks = tandem({"validate", ".", "--protocol", "ranks"});
  EXPECT_EQ(ranks.exit_code, 0);
  EXPECT_EQ(ranks.out,
            "protocol ranks: nothing to predict, because no file has tables of one collective on different numbers of "
            "devices of one node\n");
  for (const char* protocol : {"nodes", "first-row"}) {
    const Outcome outcome = tandem({"validate", ".", "--protocol", protocol, "--json"});
    EXPECT_THAT(outcome.json()["nothing"].get<std::string>(), HasSubstr("no "));
  }
  EXPECT_FALSE(tandem({"validate", ".", "--json"}).json().contains("nothing"));
}

TEST_F(ValidateCommand, ReportsTimesThatContradictTheLinks) {
  write(
      "wrong.json",
      R"({"collective": "all_reduce", "dtype": "float", "gpus": 16, "topology": {"node": "hgx-h100", "nodes": 2},)"
      R"( "rows": [{"bytes": 1048576, "time_us_out_of_place": 0.0894}, {"bytes": 2097152, "time_us_out_of_place": 80}]})");
  const Outcome outcome = tandem({"validate", "."});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("contradiction: wrong.json: all_reduce on 16 devices of 2 machines: 1 of 2 sizes are"));
  const Outcome json = tandem({"validate", ".", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(json.json()["contradictions"].size(), 1);
}

TEST_F(ValidateCommand, LeavesOutReductionsItDoesNotHave) {
  const std::string rows = R"("gpus": 8, "topology": {"node": "hgx-h100"}, "rows": [{"bytes": 1024, "time_us": 20}]})";
  write("prod.json", R"({"collective": "all_reduce", "op": "prod", )" + rows);
  write("max.json", R"({"collective": "all_reduce", "op": "max", )" + rows);
  write("gather.json", R"({"collective": "all_gather", "op": "none", )" + rows);
  const Outcome outcome = tandem({"validate", "."});
  EXPECT_THAT(outcome.out, HasSubstr("left out: 1\n  prod.json: Tandem has no reduction 'prod'\n"));
}

TEST_F(ValidateCommand, NotesAVersionThatIsNone) {
  const auto with_version = [](const std::string& version) {
    return R"({"collective": "all_reduce", "gpus": 8, "topology": {"node": "hgx-h100"}, "software": {"nccl_version": ")" +
           version + R"("}, "rows": [{"bytes": 1024, "time_us": 20}]})";
  };
  write("version.json", with_version("custom build"));
  const Outcome outcome = tandem({"validate", "."});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out,
              HasSubstr("notes: 1\n  version.json: software.nccl_version: 'custom build' is no version such "
                        "as 2.27.3, and is taken as not stated\n"));
  EXPECT_EQ(tandem({"validate", ".", "--json"}).json()["notes"][0]["file"], "version.json");
  write("version.json", with_version("not stated"));
  EXPECT_THAT(tandem({"validate", "."}).out, testing::Not(HasSubstr("notes")));
}

TEST_F(ValidateCommand, PrintsEveryPointAsJson) {
  for (const auto& [protocol, points] : {std::pair{"links", 6u}, {"sizes", 3u}, {"ranks", 0u}, {"nodes", 0u}}) {
    const Outcome outcome = tandem({"validate", ".", "--protocol", protocol, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.json()["protocol"], protocol);
    ASSERT_EQ(outcome.json()["points"].size(), points) << protocol;
    for (const auto json = outcome.json(); const auto& point : json["points"]) {
      EXPECT_EQ(point["measured_us"], 20);
      EXPECT_EQ(point["devices"], 8);
      EXPECT_EQ(point["nodes"], 1);
    }
  }
}

TEST_F(ValidateCommand, WritesTheErrorsOnWhichBandsRest) {
  std::filesystem::copy_file(TANDEM_SOURCE_DIR "/reports/data/error_bands.json", folder() / "bands.json");
  const auto before = nlohmann::json::parse(read("bands.json"));
  std::filesystem::create_directory(folder() / "training");
  std::filesystem::copy_file(TANDEM_SOURCE_DIR "/tests/validation/training/dlperf_ngc_pytorch_resnet50.json",
                             folder() / "training" / "runs.json");
  const Outcome stated = tandem({"validate", "training", "--write-bands", "bands.json"});
  ASSERT_EQ(stated.exit_code, 0) << stated.err;
  EXPECT_EQ(stated.out, tandem({"validate", "training"}).out) << "what is printed is the same";
  auto now = nlohmann::json::parse(read("bands.json"));
  EXPECT_EQ(now["calibrated"], before["calibrated"]);
  const auto of_protocol = [](const nlohmann::json& bands, const std::string& figures) {
    nlohmann::json rows = nlohmann::json::array();
    std::ranges::copy_if(bands["published"], std::back_inserter(rows),
                         [&](const nlohmann::json& row) { return row["figures"] == figures; });
    return rows;
  };
  EXPECT_EQ(of_protocol(now, "device fitted"), of_protocol(before, "device fitted"));
  EXPECT_EQ(of_protocol(now, "calibrated"), of_protocol(before, "calibrated"));
  std::size_t of_training = 0, of_collectives = 0;
  for (const nlohmann::json& row : of_protocol(now, "nothing fitted")) {
    const auto name = row["of"].get<std::string>();
    if (name.starts_with("collectives")) {
      ++of_collectives;
      continue;
    }
    ++of_training;
    const nlohmann::json& usual = row["intervals"][0];
    const ErrorInterval interval{.low = usual["low"].get<double>(), .high = usual["high"].get<double>()};
    EXPECT_THAT(stated.out,
                testing::ContainsRegex("\n" + name + " +" + std::to_string(row["rows"].get<int>()) + " +1 +[0-9.]+ "));
    EXPECT_THAT(stated.out, HasSubstr(level_text(usual["level"].get<double>()) + ": " + interval_text(interval)));
  }
  EXPECT_EQ(of_training, 3U);
  EXPECT_EQ(of_collectives, 16U) << "those of the folder are of training";
  ASSERT_EQ(tandem({"validate", "training", "--protocol", "first-row", "--write-bands", "new.json"}).exit_code, 0);
  now = nlohmann::json::parse(read("new.json"));
  EXPECT_EQ(of_protocol(now, "device fitted").size(), now["published"].size());
}

TEST_F(ValidateCommand, RefusesBandsThatDoNotFollow) {
  const Outcome nothing = tandem({"validate", ".", "--protocol", "first-row", "--write-bands", "bands.json"});
  EXPECT_EQ(nothing.exit_code, 3);
  EXPECT_THAT(nothing.err, HasSubstr("has no published measurement that counts"));
  EXPECT_FALSE(exists("bands.json"));
  EXPECT_EQ(tandem({"validate", ".", "--protocol", "ranks", "--write-bands", "bands.json"}).exit_code, 2);
  write("poem.txt", "{\"kind\": \"poem\"}");
  EXPECT_EQ(tandem({"validate", ".", "--write-bands", "poem.txt"}).exit_code, 3);
}

TEST_F(ValidateCommand, LeavesOutFilesThatItCannotRead) {
  write("broken.json", R"({"collective": "all_reduce", "gpus": 8, "rows": [{"bytes": 8, "time_us": -1}]})");
  const Outcome outcome = tandem({"validate", "."});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("left out: 1\n  broken.json: cannot be read: line 1, rows[0].time_us: must be "
                                     "greater than 0, found -1\n"));
  EXPECT_EQ(tandem({"validate", ".", "--json"}).json()["points"].size(), 6u) << "those of the other file";
}

TEST_F(ValidateCommand, LeavesOutTablesThatCannotBeSimulated) {
  write("impossible.json",
        R"({"strategy": "mirrored", "unit": "examples/s", "topology": {"node": "dgx1-v100"}, "tables": [{"workload":)"
        R"( {"kind": "layers", "model": "resnet50", "dtype": "f16", "batch": 64}, "rows": [)"
        R"({"devices": 1, "throughput": 1e9}, {"devices": 2, "throughput": 2e9}]}]})");
  const Outcome outcome = tandem({"validate", ".", "--protocol", "first-row"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("impossible.json: cannot be simulated: line 1, no speed of the device gives"));
}

TEST_F(ValidateCommand, RefusesAFolderOfWhichItCanReadNothing) {
  std::filesystem::create_directory(folder() / "folder");
  write("folder/broken.json", R"({"collective": "all_reduce", "gpus": 8, "rows": [{"bytes": 8, "time_us": -1}]})");
  const Outcome broken = tandem({"validate", "folder"});
  EXPECT_EQ(broken.exit_code, 3);
  EXPECT_THAT(broken.err, HasSubstr("broken.json:1:74: rows[0].time_us: must be greater than 0, found -1"));
  EXPECT_THAT(broken.out, IsEmpty());
  EXPECT_EQ(tandem({"validate", "nowhere"}).exit_code, 3);
  EXPECT_EQ(tandem({"validate", ".", "--protocol", "guess"}).exit_code, 2);
}

}  // namespace
}  // namespace tandem
