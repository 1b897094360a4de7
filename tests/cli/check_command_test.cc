#include <functional>

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
    json["step_time_ns"]["median"] = json["step_time_ns"]["median"].template get<std::int64_t>() * 9 / 10;
  });
  const Outcome outcome = check();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr(": regressed\n"));
  EXPECT_THAT(outcome.out, HasSubstr("step_time.median"));
  EXPECT_EQ(check({"--tolerance", "20%"}).exit_code, 0);
}

TEST_F(CheckCommand, AnotherModelIsNamed) {
  change_baseline([](auto& json) {
    json["step_time_ns"]["median"] = 1;
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
  EXPECT_THAT(broken.err, HasSubstr("baseline.json: per_step_ns: is missing\n"));
  EXPECT_THAT(broken.err, HasSubstr("baseline.json: replicas: expected a whole number of 0 or more\n"));
}

}  // namespace
}  // namespace tandem
