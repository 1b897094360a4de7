// tandem run --schedule-seed and --explore.
#include "cli/explore.h"

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Explore : public CommandLine {
 protected:
  // Two simulated GPUs that train for three steps and carry values.
  std::string write_simulation(const std::string& more = "") const {
    return write("sim.yaml",
                 "schema_version: 1\nworkload: {kind: mlp, batch: 32, hidden: [16]}\n"
                 "engine: {name: sim, values: real}\ntopology: dgx-a100\n"
                 "devices: {type: gpu, per_worker: 2}\nsteps: 3\nwarmup_steps: 1\n" +
                     more);
  }
};

TEST_F(Explore, AReportNamesItsSeedAndASeedGivesTheSameBytes) {
  const std::vector<std::string> command = {"run", write_simulation(), "--json", "--schedule-seed", "7"};
  const Outcome first = tandem(command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.json()["settings"]["schedule_seed"], "7");
  EXPECT_EQ(tandem(command).out, first.out);
  const Outcome unseeded = tandem({"run", "sim.yaml", "--json"});
  EXPECT_FALSE(unseeded.json()["settings"].contains("schedule_seed"));
  EXPECT_EQ(unseeded.json()["loss"], first.json()["loss"]);
  EXPECT_THAT(tandem({"run", "sim.yaml", "--schedule-seed", "7"}).out, HasSubstr("schedule_seed 7"));
}

TEST_F(Explore, SaysThatEveryScheduleGivesTheSameValues) {
  const Outcome outcome = tandem({"run", write_simulation(), "--explore", "20"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("20 schedules (seeds 1 to 20): all end with the values of the run without a seed"));
  EXPECT_THAT(tandem({"run", "sim.yaml", "--explore", "1", "--schedule-seed", "9"}).out,
              HasSubstr("1 schedule (seed 9): all end"));
  EXPECT_THAT(tandem({"run", "sim.yaml", "--explore", "2", "--values", "none"}).out,
              HasSubstr("no values that could be compared"));
}

TEST_F(Explore, PrintsOneJsonDocument) {
  const Outcome outcome = tandem({"run", write_simulation(), "--explore", "3", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = outcome.json();
  EXPECT_EQ(json["kind"], "exploration");
  EXPECT_EQ(json["schedules"], 3);
  EXPECT_EQ(json["completed"], 3);
  EXPECT_EQ(json["values_compared"], true);
  EXPECT_TRUE(json["failure"].is_null());
  EXPECT_LE(json["step_time_ns"]["min"], json["step_time_ns"]["max"]);
  EXPECT_EQ(json["unseeded"]["kind"], "report");
}

TEST_F(Explore, EnginesWithoutASeededScheduleAreRefused) {
  const Outcome seed = tandem({"run", write_small_scenario(), "--schedule-seed", "1"});
  EXPECT_EQ(seed.exit_code, 3);
  EXPECT_THAT(seed.err, HasSubstr("engine 'cpu' has no option schedule_seed"));
  const Outcome explore = tandem({"run", "small.yaml", "--explore", "5"});
  EXPECT_EQ(explore.exit_code, 3);
  EXPECT_THAT(explore.out, IsEmpty());
  EXPECT_THAT(explore.err, HasSubstr("engine 'cpu' has no seeded schedule"));
}

TEST_F(Explore, TheExpectationsAreThoseOfTheRunWithoutASeed) {
  const Outcome outcome = tandem({"run", write_simulation("expect: {min_test_accuracy: 1}\n"), "--explore", "2"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("expectation not met: test_accuracy is "));
}

TEST(CommandForASeed, RepeatsEveryOptionThatDecidesTheRun) {
  RunFlags flags;
  flags.scenario = "my scenario.yaml";
  EXPECT_EQ(command_for(flags, 7), "tandem run 'my scenario.yaml' --explore 1 --schedule-seed 7");
  flags.topology = "two.yaml";
  flags.changes = {.engine = "sim",
                   .device_type = "gpu",
                   .replicas = "2",
                   .workers = "3",
                   .steps = "4",
                   .cross_device_ops = "nccl",
                   .values = "real",
                   .collectives = "message",
                   .graphs = true};
  flags.run.schedule_seed = 1;
  EXPECT_EQ(command_for(flags, 7),
            "tandem run 'my scenario.yaml' --engine sim --topology two.yaml --device-type gpu --replicas 2 --workers 3 "
            "--steps 4 --cross-device-ops nccl --values real --collectives message --graphs --explore 1 "
            "--schedule-seed 7");
}

TEST_F(Explore, WrongNumbersAreRefused) {
  write_simulation();
  EXPECT_EQ(tandem({"run", "sim.yaml", "--explore", "0"}).exit_code, 2);
  EXPECT_EQ(tandem({"run", "sim.yaml", "--schedule-seed", "-1"}).exit_code, 2);
  EXPECT_EQ(tandem({"run", "sim.yaml", "--explore", "2", "--trace", "trace.json"}).exit_code, 2);
}

TEST_F(Explore, ACrashNamesItsSeed) {
  const Outcome outcome = tandem_interrupted(
      {"run", write_simulation(), "--explore", "10000000", "--schedule-seed", "5000000000"}, 1.0, SIGABRT);
  EXPECT_EQ(outcome.exit_code, 128 + SIGABRT);
  EXPECT_THAT(outcome.err, testing::ContainsRegex("tandem: crashed under --schedule-seed 50000[0-9]+\n"));
}

TEST_F(Explore, EndsSoonAfterCtrlC) {
  const Outcome outcome = tandem_interrupted({"run", write_simulation(), "--explore", "10000000"}, 1.0);
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

}  // namespace
}  // namespace tandem
