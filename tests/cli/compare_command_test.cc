#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// These tests look at the table, not at its errors.
class CompareCommand : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    ASSERT_EQ(calibrated_machine(), "machine.yaml");
    ASSERT_TRUE(exists("machine.yaml"));
  }
};

TEST_F(CompareCommand, MeasuresPredictsAndShowsTheErrors) {
  const std::vector<std::string> command = {"compare",      write_small_scenario(), "--steps", "12",      "--topology",
                                            "machine.yaml", "--replicas",           "2",       "--tries", "1"};
  const Outcome outcome = tandem(command);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"measured (cpu)", "simulated (sim)", "error", "step time", "noise of the measured run"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

// The simulation carries no values, so that a learning rate matters to the measured run only.
TEST_F(CompareCommand, NotesKeysThatNeitherRunUsed) {
  const std::string file = write("rates.yaml",
                                 "schema_version: 1\nname: rates\nworkload: {kind: mlp, batch: 32, hidden: [16], "
                                 "learning_rate: 0.2}\nstrategy: {name: mirrored, num_packs: 4}\ndevices: {per_worker: "
                                 "1}\nsteps: 12\nwarmup_steps: 2\n");
  const Outcome outcome = tandem({"compare", file, "--topology", "machine.yaml", "--tries", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("learning_rate")));
  EXPECT_THAT(outcome.out, HasSubstr("has no effect here: strategy.num_packs"));
}

TEST_F(CompareCommand, PrintsBothReportsOfEveryVariantAsJson) {
  const Outcome outcome = tandem({"compare", write_small_scenario(), "--topology", "machine.yaml", "--replicas", "1,2",
                                  "--cross-device-ops", "nccl,reduction_to_one_device", "--tries", "2", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto comparisons = outcome.json()["comparisons"];
  ASSERT_EQ(comparisons.size(), 4u);
  EXPECT_EQ(comparisons[3]["replicas"], 2);
  EXPECT_EQ(comparisons[3]["cross_device_ops"], "reduction_to_one_device");
  for (const auto& comparison : comparisons) {
    EXPECT_EQ(comparison["measured"]["engine"], "cpu");
    EXPECT_EQ(comparison["predicted"]["engine"], "sim");
    const double measured = comparison["measured"]["step_time_ns"]["mean"];
    const double predicted = comparison["predicted"]["step_time_ns"]["mean"];
    // Tests run beside one another.
    if (comparison["disturbed"]) {
      EXPECT_TRUE(comparison["errors"]["step_time"].is_null());
    } else {
      EXPECT_NEAR(comparison["errors"]["step_time"], predicted / measured - 1, 1e-9);
    }
  }
}

TEST_F(CompareCommand, ShowsNoErrorsOfADisturbedCalibration) {
  std::string machine = read("machine.yaml");
  if (machine.find("\"disturbed\": ") == std::string::npos) {
    const std::string conditions = "measured_with:\n";
    const auto at = machine.find(conditions);
    ASSERT_NE(at, std::string::npos);
    machine.insert(at + conditions.size(), "  \"disturbed\": \"much of the time went elsewhere\"\n");
  }
  const std::string topology = write("disturbed.yaml", machine);
  const Outcome compared = tandem({"compare", write_small_scenario(), "--topology", topology, "--tries", "1"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, testing::StartsWith("DISTURBED: "));
  const Outcome simulated = tandem({"run", write_small_scenario(), "--engine", "sim", "--topology", topology});
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_THAT(simulated.out, HasSubstr("the topology was measured while disturbed: "));
}

TEST_F(CompareCommand, SimulatesAtThePaceOfTheMachine) {
  const std::string fact = "\"pace: products\": \"";
  std::string machine = read("machine.yaml");
  const auto at = machine.find(fact);
  ASSERT_NE(at, std::string::npos);
  machine.insert(at + fact.size(), "1");  // some seconds
  const std::string topology = write("slower.yaml", machine);
  const Outcome compared = tandem({"compare", write_small_scenario(), "--topology", topology, "--tries", "1"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("simulated at the machine's pace around the run: products take 100 % less"));
}

TEST_F(CompareCommand, ComparesEveryStrategy) {
  const std::vector<std::string> command = {"compare",    write_small_scenario(), "--all",   "--replicas", "1,2",
                                            "--topology", "machine.yaml",         "--tries", "1"};
  const Outcome compared = tandem(command);
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr(": time of a step with every strategy, measured (cpu) and simulated (sim)\n"));
  for (const char* row : {"one_device +1", "mirrored +2", "central_storage +2", "multi_worker_mirrored +2",
                          "parameter_server +2", "fully_sharded +2", "tensor_parallel +2", "pipeline_parallel +2"}) {
    EXPECT_THAT(compared.out, testing::ContainsRegex(std::string("\n") + row + " +[0-9.]+ [mu]s +[0-9.]+ [mu]s"));
  }
  std::vector<std::string> stored = command;
  stored.insert(stored.end(), {"--json", "-o", "all.json"});
  ASSERT_EQ(tandem(stored).exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(read("all.json"))["comparisons"].size(), 8U);
  EXPECT_THAT(tandem({"report", "all.json"}).out,
              HasSubstr(": time of a step with every strategy, measured (cpu) and simulated (sim)\n"));
}

TEST_F(CompareCommand, LeavesOutStrategiesThatCannotTrainTheWorkload) {
  const std::string scenario =
      write("pipeline.yaml", "schema_version: 1\nworkload: {kind: mlp, batch: 32, hidden: [16]}\nsteps: 3\n");
  const Outcome compared =
      tandem({"compare", scenario, "--all", "--replicas", "4", "--topology", "machine.yaml", "--tries", "1"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out,
              HasSubstr("left out    pipeline_parallel on 4 devices: 2 layers cannot form 4 pipeline stages\n"));
}

TEST_F(CompareCommand, TakesNoStoredRunsWithAll) {
  const Outcome outcome = tandem({"compare", "a.json", "b.json", "--all"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--all"));
}

// Built or not: nothing is calibrated instead.
TEST_F(CompareCommand, SaysWhyGpusCannotBeCompared) {
  const auto why = testing::AnyOf(HasSubstr("engine 'cuda' is not built (built: "),
                                  HasSubstr("engine 'cuda' finds no GPU to run on: "));
  const std::string scenario = write("gpu.yaml",
                                     "schema_version: 1\nworkload: {kind: mlp, batch: 32, hidden: [16]}\n"
                                     "engine: {name: cuda}\ndevices: {per_worker: 2}\nsteps: 12\n");
  const std::vector<std::vector<std::string>> commands = {
      {"calibrate", "--engine", "cuda", "-o", "gpus.yaml"},
      {"compare", scenario},
      {"compare", write_small_scenario(), "--engines", "cuda,sim", "--device-type", "gpu"}};
  for (const auto& command : commands) {
    const Outcome outcome = tandem(command);
    if (outcome.exit_code == 0) GTEST_SKIP() << "this machine has a GPU";
    EXPECT_EQ(outcome.exit_code, 4) << command.front();
    EXPECT_THAT(outcome.err, why) << command.front();
    EXPECT_THAT(outcome.out, testing::IsEmpty());
  }
  EXPECT_FALSE(exists("gpus.yaml"));
}

TEST_F(CompareCommand, RefusesDevicesThatTheMachineLacks) {
  const Outcome outcome = tandem({"calibrate", "--engine", "cpu", "--device-type", "gpu"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("engine 'cpu' has no GPU on this machine"));
}

TEST_F(CompareCommand, RecordsWhatItMeasuredWith) {
  const std::string yaml = read("machine.yaml");
  for (const char* fact :
       {"measured_with:", "\"engine\": \"cpu\"", "\"processor\": ", "\"compiler\": ", "\"date\": "}) {
    EXPECT_THAT(yaml, HasSubstr(fact));
  }
}

TEST_F(CompareCommand, RefusesAMachineFileThatIsNotOne) {
  write("broken.yaml", "schema_version: 1\nnodes: 3\n");
  const Outcome outcome = tandem({"compare", write_small_scenario(), "--topology", "broken.yaml"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("broken.yaml:2"));
}

class StoredRuns : public CommandLine {};

TEST_F(StoredRuns, AreComparedWithoutRunningAnything) {
  const std::string scenario = example("digits-sim.yaml");
  ASSERT_EQ(tandem({"run", scenario, "--json", "-o", "a.json"}).exit_code, 0);
  ASSERT_EQ(tandem({"run", scenario, "--set", "workload.batch=128", "--json", "-o", "b.json"}).exit_code, 0);
  const Outcome outcome = tandem({"compare", "a.json", "b.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("now: b.json: digits-sim"));
  EXPECT_THAT(outcome.out, HasSubstr("step time "));
  EXPECT_THAT(outcome.out, HasSubstr("scenario changed: workload.batch 256 -> 128"));
}

TEST_F(StoredRuns, TakeNoOptionsOfARun) {
  const Outcome outcome = tandem({"compare", "a.json", "b.json", "--steps", "3"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("other excludes --steps"));
}

TEST_F(StoredRuns, AreNoScenarios) {
  ASSERT_EQ(tandem({"run", example("digits-sim.yaml"), "--json", "-o", "a.json"}).exit_code, 0);
  const Outcome outcome = tandem({"compare", "a.json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err,
            "a.json:3:3: kind: a stored result of kind 'report', and no scenario; `tandem report` shows it, and "
            "`tandem compare` takes two stored runs\n");
}

}  // namespace
}  // namespace tandem
