#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <tuple>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class CheckCommand : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    const Outcome outcome = check({"--update"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ASSERT_THAT(outcome.out, HasSubstr("stored in baseline.json"));
  }
  Outcome check(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {"check", example("resnet50-hgx-h100.yaml"), "--baseline", "baseline.json"};
    command.insert(command.end(), more.begin(), more.end());
    return tandem(command);
  }
  void change_baseline(const std::function<void(nlohmann::json&)>& change) const {
    auto json = nlohmann::json::parse(read("baseline.json"));
    change(json);
    write("baseline.json", json.dump());
  }
};

TEST_F(CheckCommand, ARepeatedSimulationIsOk) {
  const Outcome outcome = check({"--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["verdict"], "ok");
  EXPECT_TRUE(outcome.json()["differences"].empty());
}

TEST_F(CheckCommand, ASlowerStepIsARegression) {
  change_baseline([](auto& json) {
    for (const char* figure : {"mean", "median"}) {
      json["step_time_ns"][figure] = json["step_time_ns"][figure].template get<std::int64_t>() * 9 / 10;
    }
  });
  const Outcome outcome = check();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr(": regressed\n"));
  EXPECT_THAT(outcome.out, HasSubstr("step_time.median"));
  EXPECT_EQ(check({"--tolerance", "20%"}).exit_code, 0);
}

TEST_F(CheckCommand, AFasterSimulationFailsUntilItIsStored) {
  change_baseline([](auto& json) {
    for (const char* figure : {"mean", "median"}) {
      json["step_time_ns"][figure] = json["step_time_ns"][figure].template get<std::int64_t>() + 100;
    }
    json["per_step_ns"]["compute"] = json["per_step_ns"]["compute"].template get<std::int64_t>() + 80;
  });
  const Outcome faster = check({"--json"});
  EXPECT_EQ(faster.exit_code, 1);
  EXPECT_EQ(faster.json()["verdict"], "improved");
  EXPECT_EQ(faster.json()["largest_difference"]["name"], "per_step.compute");
  EXPECT_DOUBLE_EQ(faster.json()["largest_difference"]["share"], 0.8);
  EXPECT_EQ(check({"--update"}).exit_code, 0);
  EXPECT_EQ(check().exit_code, 0);
}

TEST_F(CheckCommand, NamesTheKeyThatChangedAndTheCommandThatAcceptsIt) {
  write("a job.yaml", read(write_small_scenario()));
  const std::vector<std::string> command = {"check",           "a job.yaml", "--set",
                                            "engine.name=sim", "--set",      "workload.batch=64"};
  const auto with = [&command](std::vector<std::string> more) {
    std::vector<std::string> all = command;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  ASSERT_EQ(tandem(with({"--set", "topology=dgx-a100", "--baseline", "b.json", "--update"})).exit_code, 0);
  const std::vector<std::string> changed = {"--set", "topology=dgx-a100", "--set", "steps=14", "--baseline", "b.json"};
  const Outcome text = tandem(with(changed));
  EXPECT_EQ(text.exit_code, 1) << text.err;
  EXPECT_THAT(text.out, HasSubstr("scenario changed: steps 12 -> 14"));
  EXPECT_THAT(text.out, testing::Not(HasSubstr("hash")));
  const std::string accept =
      "tandem check 'a job.yaml' --baseline b.json --set engine.name=sim --set workload.batch=64 --set "
      "topology=dgx-a100 "
      "--set steps=14 --update";
  EXPECT_THAT(text.out, HasSubstr("to accept it: " + accept + "\n"));
  std::vector<std::string> files = changed;
  files.insert(files.end(), {"--junit", "j.xml", "--markdown", "m.md", "--json"});
  EXPECT_EQ(tandem(with(files)).json()["accept"], accept);
  EXPECT_THAT(read("j.xml"), HasSubstr("steps 12 -&gt; 14"));
  for (const char* file : {"j.xml", "m.md"}) EXPECT_THAT(read(file), HasSubstr("--set steps=14 --update")) << file;
  auto old = nlohmann::json::parse(read("b.json"));
  old.erase("scenario_values");
  write("b.json", old.dump());
  EXPECT_THAT(tandem(with(changed)).out, HasSubstr("the scenario's content (hash)"));
}

TEST_F(CheckCommand, IsNotRunWhereNothingThatDecidesHasChanged) {
  EXPECT_THAT(check().out, HasSubstr("not run: program, scenario and topology are the baseline's"));
  EXPECT_THAT(check({"--always"}).out, testing::Not(HasSubstr("not run")));
  change_baseline([](auto& json) { json["inputs_hash"] = "0123456789abcdef"; });
  EXPECT_THAT(check().out, testing::Not(HasSubstr("not run"))) << "of another program";
  EXPECT_EQ(check({"--update", "--always"}).exit_code, 0);
  EXPECT_THAT(read("baseline.json"), testing::Not(HasSubstr("inputs_hash")));
  EXPECT_EQ(check().exit_code, 0);
}

TEST_F(CheckCommand, AChangedBaselineIsNotMistakenForAnOldOne) {
  change_baseline([](auto& json) { json["per_step_ns"]["idle"] = 1; });
  const Outcome outcome = check();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("per_step.idle changed most"));
}

TEST_F(CheckCommand, AnotherModelIsNamed) {
  change_baseline([](auto& json) {
    json["step_time_ns"]["mean"] = json["step_time_ns"]["median"] = 1;
    json["settings"]["a model"] = "of yesterday";
  });
  const Outcome outcome = check();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr(": model changed\n"));
  EXPECT_THAT(outcome.out, HasSubstr("a model is '(none)', in the baseline 'of yesterday'"));
}

TEST_F(CheckCommand, ABudgetCanBeExceeded) {
  EXPECT_EQ(check({"--max-step-time", "1h"}).exit_code, 2) << "an hour is not a unit here";
  EXPECT_EQ(check({"--max-step-time", "3600s"}).exit_code, 0);
  EXPECT_EQ(check({"--max-step-time", "1ns"}).exit_code, 1);
  EXPECT_EQ(check({"--max-step-time", "1e12s"}).exit_code, 2) << "longer than nanoseconds are counted";
}

TEST_F(CheckCommand, ABudgetOfExactlyTheStepHolds) {
  // As 0.09 ms are 89,999.99... ns as a double: a unit in which this step is less than it should be.
  const int step =
      tandem({"run", example("resnet50-hgx-h100.yaml"), "--json", "-q"}).json()["step_time_ns"]["mean"].get<int>();
  change_baseline([step](auto& json) { json["step_time_ns"]["mean"] = step - 1; });
  std::string budget;
  for (const auto& [unit, digits, seconds] : {std::tuple{"us", 3, 1e-6}, {"ms", 6, 1e-3}, {"s", 9, 1.0}}) {
    const std::string number = fmt::format("{:.{}f}", step * 1e-9 / seconds, digits);
    if (static_cast<int>(std::stod(number) * seconds * 1e9) < step) budget = number + unit;
  }
  if (budget.empty()) GTEST_SKIP() << "a step of " << step << " ns is exact in every unit, and shows nothing";
  EXPECT_THAT(check({"--max-step-time", budget}).out, testing::Not(HasSubstr("over its budget")));
}

// Compute changes by more nanoseconds, but only idle by more than the tolerance.
TEST_F(CheckCommand, NamesAsLargestOnlyWhatIsBeyondTheTolerance) {
  change_baseline([](auto& json) {
    json["per_step_ns"]["compute"] = json["per_step_ns"]["compute"].template get<std::int64_t>() + 100'000;
    json["per_step_ns"]["idle"] = json["per_step_ns"]["idle"].template get<std::int64_t>() + 50'000;
  });
  EXPECT_EQ(check({"--json"}).json()["largest_difference"]["name"], "per_step.compute");
  EXPECT_EQ(check({"--json", "--tolerance", "5%"}).json()["largest_difference"]["name"], "per_step.idle");
}

TEST_F(CheckCommand, ColorsTheVerdictWhereItIsAskedTo) {
  const std::string green = "\033[32mok\033[0m";
  EXPECT_THAT(check().out, testing::Not(HasSubstr("\033["))) << "no terminal";
  setenv("FORCE_COLOR", "1", 1);
  EXPECT_THAT(check().out, HasSubstr(green));
  EXPECT_THAT(check({"--no-color"}).out, testing::Not(HasSubstr("\033[")));
  unsetenv("FORCE_COLOR");
}

TEST_F(CheckCommand, FewMeasuredStepsAreInconclusive) {
  std::string text = read(write_small_scenario());
  write("short.yaml", text.replace(text.find("steps: 12"), 9, "steps: 7"));
  EXPECT_EQ(tandem({"check", "short.yaml", "--baseline", "short.json", "--update", "-q"}).exit_code, 0);
  const Outcome outcome = tandem({"check", "short.yaml", "--baseline", "short.json"});
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_THAT(outcome.out, HasSubstr("too few steps: 5 now and 5 in the baseline; at least 9 are needed"));
}

TEST_F(CheckCommand, RefusesABaselineThatIsNotOne) {
  const Outcome missing = tandem({"check", example("resnet50-hgx-h100.yaml"), "--baseline", "other.json"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.err, "other.json: no such baseline; --update stores this run as one\n");
  change_baseline([](auto& json) {
    json.erase("per_step_ns");
    json["replicas"] = "two";
  });
  const Outcome broken = check();
  EXPECT_EQ(broken.exit_code, 3);
  EXPECT_THAT(broken.err, HasSubstr("baseline.json:1:1: per_step_ns: is missing\n"));
  EXPECT_THAT(broken.err, testing::ContainsRegex("baseline.json:[0-9]+:[0-9]+: replicas: expected a whole number"));
}

TEST_F(CheckCommand, RefusesBaselinesThatAreEmptyCutOrOfAnotherVersion) {
  const std::string whole = read("baseline.json");
  write("baseline.json", "");
  EXPECT_EQ(check().exit_code, 3);
  EXPECT_EQ(check().err, "baseline.json: the file is empty\n");
  write("baseline.json", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(check().exit_code, 3);
  write("baseline.json", whole);
  change_baseline([](auto& json) { json["schema_version"] = 2; });
  EXPECT_EQ(check().exit_code, 3);
  EXPECT_THAT(check().err, HasSubstr("schema_version: version 2 is not known"));
  write("baseline.json", whole);
  change_baseline([](auto& json) { json["step_time_ns"]["median"] = nullptr; });
  EXPECT_THAT(check().err, HasSubstr("step_time_ns.median: expected a whole number"));
  write("baseline.json", whole);
  change_baseline([](auto& json) { json["scenario"] = "another"; });
  const Outcome another = check();
  EXPECT_EQ(another.exit_code, 1);
  EXPECT_THAT(another.out, HasSubstr("the baseline is of another job"));
}

// JSON has no NaN, though some programs write it.
TEST_F(CheckCommand, RefusesABaselineWithALiteralThatIsNoNumber) {
  const std::string whole = read("baseline.json");
  const std::string median = "\"median\": ";
  for (const char* literal : {"NaN", "nan", "Infinity", "-Infinity", "1e999"}) {
    std::string text = whole;
    const std::size_t at = text.find(median) + median.size();
    write("baseline.json", text.replace(at, text.find(',', at) - at, literal));
    const Outcome outcome = check();
    EXPECT_EQ(outcome.exit_code, 3) << literal;
    EXPECT_THAT(outcome.err, testing::ContainsRegex("^baseline.json:[0-9]+:[0-9]+: ")) << literal;
    EXPECT_EQ(outcome.out, "") << literal;
  }
}

TEST_F(CheckCommand, AFullDiskLeavesTheBaselineAsItWas) {
  const std::vector<std::string> full = {"check", example("resnet50-hgx-h100.yaml"), "--baseline", "/dev/full",
                                         "--update"};
  const Outcome outcome = tandem(full);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write /dev/full: No space left on device"));
  const std::string whole = read("baseline.json");
  // A file may not grow beyond 512 bytes: as on a full disk, some of it can be written.
  const std::string command = "cd " + folder().string() +
                              " && ulimit -f 1 && trap '' XFSZ && " TANDEM_BINARY " check " +
                              example("resnet50-hgx-h100.yaml") + " --baseline baseline.json --update 2> err.txt";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_THAT(read("err.txt"), HasSubstr("cannot write baseline.json: File too large"));
  EXPECT_EQ(read("baseline.json"), whole);
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << "half written";
  }
}

}  // namespace
}  // namespace tandem
