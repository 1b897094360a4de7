// `tandem check DIR|LIST` and the files it writes for CI systems.
#include <cstdlib>
#include <fstream>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class CheckSuite : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    std::filesystem::create_directory(folder() / "gate");
    for (const char* name : {"resnet50-hgx-h100", "mesh", "tensor-parallel"}) {
      std::filesystem::copy_file(example(std::string(name) + ".yaml"),
                                 folder() / "gate" / (std::string(name) + ".yaml"));
    }
    const Outcome stored = check({"--update"});
    ASSERT_EQ(stored.exit_code, 0) << stored.err;
  }
  void TearDown() override {
    unsetenv("GITHUB_ACTIONS");
    unsetenv("GITHUB_STEP_SUMMARY");
    CommandLine::TearDown();
  }
  Outcome check(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {"check", "gate", "--baseline", "golden", "-q"};
    command.insert(command.end(), more.begin(), more.end());
    return tandem(command);
  }
  void make_mesh_slower() const {
    auto golden = nlohmann::json::parse(read("golden/mesh.json"));
    golden["step_time_ns"]["mean"] = golden["step_time_ns"]["median"] =
        golden["step_time_ns"]["median"].get<std::int64_t>() / 2;
    write("golden/mesh.json", golden.dump());
  }
};

TEST_F(CheckSuite, OfAFolderHasAVerdictForEachScenario) {
  const Outcome fine = check();
  EXPECT_EQ(fine.exit_code, 0) << fine.err;
  EXPECT_TRUE(fine.out.ends_with("\n3 ok\n")) << fine.out;
  make_mesh_slower();
  const Outcome outcome = check({"--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  const auto json = outcome.json();
  EXPECT_EQ(json["kind"], "suite");
  EXPECT_EQ(json["summary"]["ok"], 2);
  EXPECT_EQ(json["summary"]["regressed"], 1);
  EXPECT_EQ(json["scenarios"][0]["file"], "gate/mesh.yaml");
  EXPECT_EQ(json["scenarios"][0]["outcome"], "regressed");
  EXPECT_EQ(json["scenarios"][0]["check"]["kind"], "check");
}

TEST_F(CheckSuite, OfAListIsInItsOrder) {
  write("gate/list.txt", "# two of three\ntensor-parallel.yaml  # the first\n\nmesh.yaml\r\n");
  const auto json = tandem({"check", "gate/list.txt", "--baseline", "golden", "-q", "--json"}).json();
  ASSERT_EQ(json["scenarios"].size(), 2U);
  EXPECT_EQ(json["scenarios"][0]["file"], "gate/tensor-parallel.yaml");
  EXPECT_EQ(json["scenarios"][1]["file"], "gate/mesh.yaml");
}

TEST_F(CheckSuite, GoesOnAfterAScenarioThatIsBroken) {
  write("gate/broken.yaml", "schema_version: 1\nworkload: {kind: none}\nsteps: many\n");
  std::filesystem::copy_file(example("fully-sharded.yaml"), folder() / "gate/unknown.yaml");
  const Outcome outcome = check({"--json"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  const auto scenarios = outcome.json()["scenarios"];
  ASSERT_EQ(scenarios.size(), 5U);
  EXPECT_EQ(scenarios[0]["outcome"], "failed");
  EXPECT_THAT(scenarios[0]["reason"].get<std::string>(), HasSubstr("gate/broken.yaml:3:8"));
  EXPECT_EQ(scenarios[4]["outcome"], "failed");
  EXPECT_THAT(scenarios[4]["reason"].get<std::string>(), HasSubstr("golden/unknown.json: no such baseline"));
  make_mesh_slower();
  EXPECT_EQ(check().exit_code, 1) << "a regression comes first";
}

TEST_F(CheckSuite, WithoutScenariosIsRefused) {
  std::filesystem::create_directory(folder() / "empty");
  EXPECT_EQ(tandem({"check", "empty", "--baseline", "golden"}).exit_code, 3);
  EXPECT_THAT(tandem({"check", "empty", "--baseline", "golden"}).err, HasSubstr("empty: has no scenario"));
  write("list.txt", "# nothing\n");
  EXPECT_EQ(tandem({"check", "list.txt", "--baseline", "golden"}).exit_code, 3);
  std::filesystem::create_directory(folder() / "gate2");
  std::filesystem::copy_file(folder() / "gate/mesh.yaml", folder() / "gate2/mesh.yaml");
  write("twice.txt", "gate/mesh.yaml\ngate2/mesh.yaml\n");
  const auto json = tandem({"check", "twice.txt", "--baseline", "golden", "--json", "-q"}).json();
  EXPECT_THAT(json["scenarios"][1]["reason"].get<std::string>(), HasSubstr("is that of gate/mesh.yaml as well"));
}

TEST_F(CheckSuite, SkipsSimulationsWithoutABaseline) {
  const Outcome outcome = tandem({"check", "gate", "--against", TANDEM_BINARY, "-q", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["summary"]["skipped"], 3);
}

TEST_F(CheckSuite, KeepsTheTimesOfSimulationsInTheirHistory) {
  const Outcome outcome = tandem({"check", "gate", "--history", "h.jsonl", "-q", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["summary"]["ok"], 3);
  EXPECT_EQ(tandem({"history", "h.jsonl", "--json"}).json()["series"].size(), 3U);
}

TEST_F(CheckSuite, ComparesMeasuredScenariosByTheirHistoryAndSimulatedOnesByGoldenReports) {
  write_small_scenario();
  std::filesystem::copy_file(folder() / "small.yaml", folder() / "gate/small.yaml");
  const Outcome outcome = check({"--history", "h.jsonl", "--json"});
  EXPECT_EQ(outcome.exit_code, 6) << outcome.err;
  EXPECT_EQ(outcome.json()["summary"]["ok"], 3);
  EXPECT_EQ(outcome.json()["scenarios"][2]["file"], "gate/small.yaml");
  EXPECT_EQ(outcome.json()["scenarios"][2]["mode"], "history");
  EXPECT_TRUE(exists("h.jsonl"));
}

TEST_F(CheckSuite, WritesWhatCiSystemsAndTrackersRead) {
  make_mesh_slower();
  setenv("GITHUB_ACTIONS", "true", 1);
  setenv("GITHUB_STEP_SUMMARY", (folder() / "summary.md").c_str(), 1);
  const Outcome outcome = check(
      {"--junit", "junit.xml", "--markdown", "table.md", "--google-benchmark", "bench.json", "--csv", "times.csv"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(read("junit.xml"), HasSubstr("<testsuites tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\">"));
  EXPECT_THAT(read("table.md"), HasSubstr("| mesh | **regressed** |"));
  EXPECT_EQ(read("summary.md"), read("table.md"));
  EXPECT_EQ(nlohmann::json::parse(read("bench.json"))["benchmarks"].size(), 3U);
  EXPECT_THAT(read("times.csv"), HasSubstr("mesh,gate/mesh.yaml,exact,regressed,"));
  EXPECT_THAT(outcome.err, HasSubstr("::error file=gate/mesh.yaml,line=1,title=mesh%3A regressed::"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("::error")));
  EXPECT_EQ(check().exit_code, 1);
  EXPECT_EQ(read("summary.md"), read("table.md") + read("table.md")) << "steps of a job share it";
  if (std::system("xmllint --version > /dev/null 2>&1") == 0) {
    EXPECT_EQ(std::system(("xmllint --noout " + (folder() / "junit.xml").string()).c_str()), 0);
  }
}

TEST_F(CheckSuite, OneScenarioHasTheseFilesToo) {
  const Outcome one =
      tandem({"check", "gate/mesh.yaml", "--baseline", "golden/mesh.json", "--junit", "junit.xml", "-q"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(read("junit.xml"), HasSubstr("<testcase classname=\"tandem.exact\" name=\"mesh\""));
  const Outcome nowhere =
      tandem({"check", "gate/mesh.yaml", "--baseline", "golden/mesh.json", "--csv", "no/such/folder.csv"});
  EXPECT_EQ(nowhere.exit_code, 5);
  EXPECT_EQ(nowhere.out, "") << "before the run";
  const Outcome full = tandem({"check", "gate", "--baseline", "golden", "-q", "--junit", "/dev/full"});
  EXPECT_EQ(full.exit_code, 5);
  EXPECT_THAT(full.err, HasSubstr("cannot write /dev/full: No space left on device"));
}

TEST_F(CheckSuite, AScenarioThatFailsHasTheseFilesToo) {
  write("gate/mesh.yaml", "workload: [");
  const Outcome broken = tandem(
      {"check", "gate/mesh.yaml", "--baseline", "golden/mesh.json", "--junit", "junit.xml", "--markdown", "table.md"});
  EXPECT_EQ(broken.exit_code, 3);
  EXPECT_THAT(broken.err, HasSubstr("gate/mesh.yaml:1:"));
  EXPECT_THAT(read("junit.xml"), HasSubstr("<error type=\"exit code 3\""));
  EXPECT_THAT(read("table.md"), HasSubstr("| **failed** |"));
}

TEST_F(CheckSuite, AFileThatCannotBeWrittenCostsNoOtherResult) {
  setenv("GITHUB_STEP_SUMMARY", "/no/such/folder/summary.md", 1);
  const Outcome fine = check();
  EXPECT_EQ(fine.exit_code, 0) << "nobody asked for the summary";
  EXPECT_THAT(fine.err, HasSubstr("tandem: no summary in /no/such/folder/summary.md"));
  const Outcome full = check({"--junit", "/dev/full", "--markdown", "table.md"});
  EXPECT_EQ(full.exit_code, 5);
  EXPECT_THAT(full.out, HasSubstr("3 ok"));
  EXPECT_THAT(read("table.md"), HasSubstr("| mesh | ok |"));
}

TEST_F(CheckSuite, AnExpectationThatIsNotMetIsNotOk) {
  std::string scenario = read("gate/mesh.yaml");
  write("gate/mesh.yaml", scenario.replace(scenario.find("min_test_accuracy: 0.9"), 22, "max_step_time: 1ns"));
  ASSERT_EQ(check({"--update"}).exit_code, 1) << "stored, and not met";
  const Outcome outcome = check({"--json", "--junit", "junit.xml"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.json()["summary"]["expectation not met"], 1);
  EXPECT_EQ(outcome.json()["scenarios"][0]["check"]["expectations_not_met"].size(), 1U);
  EXPECT_THAT(read("junit.xml"), HasSubstr("<failure type=\"expectation not met\""));
}

TEST_F(CheckSuite, ComparesEachMeasuredScenarioWithTheOtherProgram) {
  std::filesystem::create_directory(folder() / "measured");
  write_small_scenario();
  std::filesystem::copy_file(folder() / "small.yaml", folder() / "measured/one.yaml");
  write("measured/two.yaml", "name: two\n" + read("small.yaml"));
  for (const char* name : {"one", "two"}) {
    auto report = tandem({"run", std::string("measured/") + name + ".yaml", "--json", "-q"}).json();
    report["step_time_ns"]["mean"] = report["step_time_ns"]["median"] = 1;
    write(std::string(name) + ".json", report.dump());
  }
  write("fast", "#!/bin/sh\ncat \"" + folder().string() + "/$(basename \"$2\" .yaml).json\"\n");
  std::filesystem::permissions(folder() / "fast", std::filesystem::perms::owner_all);
  const Outcome outcome = tandem({"check", "measured", "--against", "./fast", "--gate", "wall-clock", "-q", "--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(outcome.json()["summary"]["regressed"], 2);
  EXPECT_EQ(outcome.json()["scenarios"][0]["check"]["pairs"], 16) << "eight are too few for one of two";
  const Outcome broken = tandem({"check", "measured", "--against", "./nowhere", "-q"});
  EXPECT_EQ(broken.exit_code, 3);
  EXPECT_THAT(broken.err, HasSubstr("nowhere: no such program"));
}

}  // namespace
}  // namespace tandem
