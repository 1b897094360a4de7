#include <algorithm>
#include <chrono>
#include <limits>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class RunCommand : public CommandLine {};

TEST_F(RunCommand, GraphsAreOfEnginesThatLaunchOnGpus) {
  const Outcome outcome = tandem({"run", write_small_scenario(), "--graphs"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("engine 'cpu' has no option graphs"));
}

TEST_F(RunCommand, SaysWhichFileIsMissing) {
  const Outcome outcome = tandem({"run", "nowhere.yaml"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err, "nowhere.yaml: no such scenario file\n");
  EXPECT_THAT(tandem({"run", example("digit.yaml")}).err,
              HasSubstr("no such scenario file; did you mean '" + example("digits.yaml") + "'?"));
  EXPECT_EQ(tandem({"run", "."}).err, ".: is a folder; expected a scenario file\n");
}

// Figures with a stated range are varied without being asked for, others with --assumptions only.
TEST_F(RunCommand, ShowsWhatFiguresWithAStatedRangeWouldChange) {
  write("nodes.yaml",
        "schema_version: 1\nname: nodes\nworkload: {kind: layers, model: resnet50, batch: 16, dtype: bf16}\n"
        "strategy: {name: multi_worker_mirrored}\nengine: {name: sim}\n"
        "topology: {cluster: {node: aws-p5, workers: 2}}\ndevices: {type: gpu, per_worker: 8}\nsteps: 2\n");
  const Outcome outcome = tandem({"run", "nodes.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("moved most by.*\n  hop_latency of network efa +30.00 us"));
  EXPECT_THAT(outcome.out, testing::Not(testing::ContainsRegex("\n  memory_latency of 'NVIDIA H100")));
  EXPECT_THAT(tandem({"run", "nodes.yaml", "--assumptions"}).out, HasSubstr("\n  memory_latency of 'NVIDIA H100"));
  EXPECT_THAT(tandem({"run", "nodes.yaml", "--set", "topology.cluster.node=hgx-h100"}).out,
              testing::Not(HasSubstr("no assumed figure")))
      << "nobody asked";
}

TEST_F(RunCommand, NamesEveryMistakeOfAScenarioOnALineOfItsOwn) {
  write("broken.yaml", "schema_version: 1\nworkload: {kind: mpl, batch: -1}\nsteps: 5\n");
  const Outcome outcome = tandem({"run", "broken.yaml"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, testing::ContainsRegex("broken.yaml:2:[0-9]+: workload.kind: .*mlp"));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("broken.yaml:2:[0-9]+: workload.batch: "));
}

TEST_F(RunCommand, RefusesAnEngineThatIsNotThere) {
  const Outcome outcome = tandem({"run", example("digits.yaml"), "--engine", "sims"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("unknown engine 'sims' (one of cpu, cuda, mpi, sim)"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean 'sim'?"));
}

// Built or not, an engine without its hardware is no fallback to another.
TEST_F(RunCommand, RefusesGpusThatAreNotThere) {
  const Outcome outcome = tandem({"run", example("digits.yaml"), "--engine", "cuda"});
  if (outcome.exit_code != 4 && outcome.err.empty()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, testing::AnyOf(HasSubstr("engine 'cuda' is not built (built: "),
                                          HasSubstr("engine 'cuda' finds no GPU to run on: ")));
}

// In memory on a simulated machine, in threads on a real one.
TEST_F(RunCommand, RefusesBeforehandWhatThisMachineIsTooSmallFor) {
  const Outcome simulated = tandem({"run", example("digits-sim.yaml"), "--replicas", "1000000", "--steps", "1000000"});
  EXPECT_EQ(simulated.exit_code, 5);
  EXPECT_THAT(simulated.err, HasSubstr("digits-sim.yaml:"));
  EXPECT_THAT(simulated.err, HasSubstr("devices: 1000000 devices, 1000000 of them simulated"));
  EXPECT_THAT(simulated.err, testing::AnyOf(HasSubstr("of this machine's memory; "), HasSubstr(" are available ")));
  for (const char* name : {"digits.yaml", "layers-small.yaml", "digits-multi-worker.yaml"}) {
    const Outcome outcome = tandem({"run", example(name), "--replicas", "1048576"});
    EXPECT_EQ(outcome.exit_code, 5) << name;
    EXPECT_THAT(outcome.err, HasSubstr(" devices need at least as many threads; this system allows ")) << name;
  }
}

TEST_F(RunCommand, RefusesMoreDevicesThanCanBeCounted) {
  const Outcome outcome = tandem({"run", example("mesh.yaml"), "--replicas", "1000000", "--workers", "1000000"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err,
              HasSubstr("--replicas 1000000: devices.per_worker: 1000000 workers of 1000000 devices are more than "
                        "1073741824 devices"));
  write("many.yaml",
        "schema_version: 1\nworkload: {kind: mlp, batch: 32, hidden: [16]}\n"
        "strategy: {name: multi_worker_mirrored}\ndevices: {type: cpu, workers: 1000000, per_worker: 1000000}\n"
        "steps: 5\n");
  EXPECT_EQ(tandem({"run", "many.yaml"}).err,
            "many.yaml:4:10: devices: 1000000 workers of 1000000 devices are more than 1073741824 devices\n");
}

TEST_F(RunCommand, ShowsThatALongRunIsUnderWay) {
  if (!has_terminals()) GTEST_SKIP() << "no pseudo-terminals here (/dev/pts)";
  write("long.yaml",
        "schema_version: 1\nname: long\nworkload: {kind: layers, model: bert_large, batch: 4096, dtype: bf16}\n"
        "strategy: {name: multi_worker_mirrored}\nengine: {name: sim, records: steps, symmetry: off}\n"
        "topology: {cluster: {node: hgx-h100, workers: 128}}\n"
        "devices: {type: gpu, workers: 128, per_worker: 8}\nsteps: 2\nwarmup_steps: 1\n");
  EXPECT_THAT(shown_on_terminal({"run", "long.yaml"}, " s"),
              testing::AnyOf(HasSubstr("long: prepares the engine, 2 s"), HasSubstr("long: begins its first step, 2 s"),
                             HasSubstr("long: step: 1 of 2, 2 s")))
      << "as fast as the machine is";
}

TEST_F(RunCommand, PrintsAReportForPeople) {
  const Outcome outcome = tandem({"run", example("resnet50-hgx-h100.yaml")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"step time", "throughput", "exposed communication", "idle", "settings"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST_F(RunCommand, PrintsOneJsonDocumentWithEveryField) {
  const Outcome outcome = tandem({"run", write_small_scenario(), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = outcome.json();
  for (const char* key :
       {"schema_version", "kind",         "tandem_version", "scenario",         "scenario_hash", "engine",
        "deterministic",  "topology",     "strategy",       "cross_device_ops", "replicas",      "steps",
        "warmup_steps",   "step_time_ns", "throughput",     "per_step_ns",      "collectives",   "loss",
        "metrics",        "settings",     "notes"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["engine"], "cpu");
  EXPECT_EQ(json["steps"], 12);
  EXPECT_GT(json["step_time_ns"]["median"], 0);
  EXPECT_GT(json["per_step_ns"]["compute"], 0);
  EXPECT_LE(json["per_step_ns"]["exposed_communication"], json["per_step_ns"]["communication"]);
  EXPECT_EQ(json["loss"].size(), 12u);
}

// Their expectations hold, too: they would end with 1.
TEST_F(RunCommand, RunsTheExamplesOfSeveralWorkers) {
  struct Example {
    const char* name;
    int replicas, workers, servers;
  };
  for (const auto& [name, replicas, workers, servers] :
       {Example{"digits-multi-worker", 4, 2, 0}, Example{"digits-parameter-server", 2, 2, 1},
        Example{"digits-parameter-server-sim", 6, 3, 2}, Example{"resnet50-4x-hgx-h100", 32, 4, 0}}) {
    Outcome outcome;
    // What workers learn that do not wait for each other depends on who gets the processors: 1 is a missed expectation.
    for (int attempt = 0; attempt < (servers > 0 ? 4 : 1) && outcome.exit_code != 0; ++attempt) {
      outcome = tandem({"run", example(std::string(name) + ".yaml"), "--json"});
      if (outcome.exit_code != 1) break;
    }
    ASSERT_EQ(outcome.exit_code, 0) << name << ": " << outcome.err;
    const auto json = outcome.json();
    EXPECT_EQ(json["replicas"], replicas) << name;
    EXPECT_EQ(json["workers"], workers) << name;
    EXPECT_EQ(json["parameter_servers"], servers) << name;
    EXPECT_EQ(json["asynchronous"], servers > 0) << name;
    EXPECT_EQ(json["metrics"].contains("staleness_mean"), servers > 0) << name;
    EXPECT_EQ(json["worker_step_time_ns"].size(), static_cast<std::size_t>(workers)) << name;
  }
}

TEST_F(RunCommand, GivesTheSameBytesForTheSameSimulationOfWorkersThatDoNotWait) {
  const std::vector<std::string> command = {"run", example("digits-parameter-server-sim.yaml"), "--json", "--steps",
                                            "15"};
  EXPECT_EQ(tandem(command).out, tandem(command).out);
}

TEST_F(RunCommand, ComparesSeveralWorkersOfThisMachine) {
  const Outcome outcome =
      tandem({"compare", example("digits-multi-worker.yaml"), "--steps", "12", "--tries", "1", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["comparisons"][0]["predicted"]["workers"], 2);
}

TEST_F(RunCommand, GivesTheSameBytesForTheSameSimulation) {
  const std::vector<std::string> command = {"run", example("resnet50-hgx-h100.yaml"), "--json"};
  const Outcome first = tandem(command);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(first.json()["deterministic"]);
  EXPECT_EQ(tandem(command).out, first.out);
}

TEST_F(RunCommand, TakesOverridesFromTheCommandLine) {
  const Outcome outcome = tandem({"run", example("resnet50-hgx-h100.yaml"), "--json", "--replicas", "2", "--steps", "5",
                                  "--cross-device-ops", "reduction_to_one_device", "--collectives", "message"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["replicas"], 2);
  EXPECT_EQ(outcome.json()["steps"], 5);
  EXPECT_EQ(outcome.json()["cross_device_ops"], "reduction_to_one_device");
  const Outcome workers =
      tandem({"run", example("resnet50-4x-hgx-h100.yaml"), "--json", "--replicas", "2", "--workers", "3"});
  ASSERT_EQ(workers.exit_code, 0) << workers.err;
  EXPECT_EQ(workers.json()["replicas"], 6);
  const Outcome refused = tandem({"run", example("digits.yaml"), "--workers", "2"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("--workers 2: devices.workers: strategy 'mirrored' uses 1 worker, found 2"));
}

TEST_F(RunCommand, WritesReportAndTraceToFiles) {
  const Outcome outcome = tandem({"run", example("resnet50-hgx-h100.yaml"), "--json", "--steps", "5", "-o",
                                  "report.json", "--trace", "trace.{worker}.json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(nlohmann::json::parse(read("report.json"))["kind"], "report");
  const std::string trace = read("trace.0.json");
  EXPECT_THAT(trace, HasSubstr("\"rank\": 0"));
  EXPECT_GT(nlohmann::json::parse(trace)["traceEvents"].size(), 20u);
}

// A file may not grow beyond 4 KiB: as on a full disk, some of it can be written.
TEST_F(RunCommand, ATraceIsReplacedAsAWholeOrNotAtAll) {
  write("trace.json", "the one before");
  const std::string command = "cd " + folder().string() +
                              " && ulimit -f 8 && trap '' XFSZ && exec " TANDEM_BINARY " run " +
                              write_small_scenario() + " -q --trace trace.json >out.txt 2>err.txt";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_THAT(read("err.txt"), HasSubstr("tandem: cannot write trace.json: File too large"));
  EXPECT_EQ(read("trace.json"), "the one before");
  for (const auto& file : std::filesystem::directory_iterator(folder())) {
    EXPECT_THAT(file.path().filename().string(), testing::Not(HasSubstr(".tmp")));
  }
}

TEST_F(RunCommand, SaysBeforeTheRunThatAFileCannotBeWritten) {
  for (const char* option : {"-o", "--trace"}) {
    const Outcome outcome = tandem({"run", write_small_scenario(), option, "no/such/folder/file"});
    EXPECT_EQ(outcome.exit_code, 5);
    EXPECT_THAT(outcome.err, HasSubstr("cannot write no/such/folder/file: No such file or directory"));
  }
}

// A run this long ends by its interruption only.
TEST_F(RunCommand, SaysBeforeTheRunThatAWorkersTraceCannotBeWritten) {
  const Outcome outcome = tandem_interrupted(
      {"run", write_small_scenario(), "--steps", "10000000", "--trace", "no/such/folder/trace.{worker}.json"}, 3.0);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write no/such/folder/trace.0.json: No such file or directory"));
}

TEST_F(RunCommand, SaysThatLogicalDevicesShareAGpu) {
  const std::vector<std::string> nine = {"run", example("resnet50-hgx-h100.yaml"), "--steps", "4", "--replicas", "9"};
  const std::string note =
      "shared: 9 logical devices are on 8 GPUs of one machine, up to 2 on each; times are not those of 9 GPUs";
  std::vector<std::string> as_json = nine;
  as_json.emplace_back("--json");
  EXPECT_THAT(tandem(as_json).json()["notes"], testing::Contains(note));
  EXPECT_THAT(tandem(nine).out, HasSubstr("shared: 9 logical devices are on 8 GPUs of one machine"));
  as_json[5] = "8";
  for (const auto json = tandem(as_json).json(); const auto& other : json["notes"]) {
    EXPECT_THAT(other.get<std::string>(), testing::Not(HasSubstr("shared")));
  }
}

TEST_F(RunCommand, NamesTheOperationsThatAutoStandsFor) {
  std::vector<std::string> command = {"run", example("digits-sim.yaml"), "--steps", "14"};
  EXPECT_THAT(tandem(command).out, HasSubstr("mirrored, collective\n"));
  command.emplace_back("--json");
  EXPECT_EQ(tandem(command).json()["cross_device_ops"], "collective");
}

TEST_F(RunCommand, IsSilentOnStderr) {
  EXPECT_THAT(tandem({"run", write_small_scenario(), "-q"}).err, IsEmpty());
}

TEST_F(RunCommand, SaysWhatItDoesWhereItIsAskedTo) {
  const Outcome outcome = tandem({"run", write_small_scenario(), "--verbose", "-o", "report.txt"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err,
              testing::ContainsRegex("tandem: read small.yaml: .*tandem: run .*tandem: write report.txt: "));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(tandem({"run", "small.yaml", "--verbose", "--quiet"}).exit_code, 2);
}

TEST_F(RunCommand, FailsWhenAnExpectationIsNotMet) {
  write_small_scenario("expect: {min_test_accuracy: 1, max_step_time: 1ns}\n");
  const Outcome outcome = tandem({"run", "small.yaml", "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("expectation not met: test_accuracy is "));
  EXPECT_THAT(outcome.err, HasSubstr("; at most 1.000 ns is expected"));
  EXPECT_EQ(outcome.json()["kind"], "report") << "the report is printed all the same";
}

TEST_F(RunCommand, EndsSoonAfterCtrlC) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = tandem_interrupted({"run", write_small_scenario(), "--steps", "10000000"}, 1.0);
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_F(RunCommand, CanBeSlowedDownOnPurpose) {
  const auto compute = [this] {
    const auto report = tandem({"run", write_small_scenario(), "--json", "-q"}).json();
    return report["per_step_ns"]["compute"].get<double>() + report["per_step_ns"]["update"].get<double>();
  };
  // The fastest of several, because whatever else the machine does makes a run slower only.
  double fast = std::numeric_limits<double>::max(), slow = fast;
  for (int i = 0; i < 5; ++i) {
    unsetenv("TANDEM_SLOW_DOWN");
    fast = std::min(fast, compute());
    setenv("TANDEM_SLOW_DOWN", "9", 1);
    slow = std::min(slow, compute());
  }
  const Outcome outcome = tandem({"run", write_small_scenario(), "-q"});
  setenv("TANDEM_SLOW_DOWN", "fast", 1);
  const Outcome wrong = tandem({"run", write_small_scenario(), "-q"});
  unsetenv("TANDEM_SLOW_DOWN");
  EXPECT_GT(slow, 3 * fast) << "ten times as long, but for what else the machine does";
  EXPECT_THAT(outcome.out, testing::HasSubstr("slowed down on purpose: device work takes 900 % longer"));
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_THAT(wrong.err, testing::HasSubstr("TANDEM_SLOW_DOWN must be a share from 0 to 10"));
}

TEST_F(RunCommand, AMeasurementStandsBesideWhatTheModelExpects) {
  const std::string machine = calibrated_machine();
  const auto report = tandem({"run", write_small_scenario(), "--topology", machine, "--json", "-q"}).json();
  ASSERT_TRUE(report.contains("expectation")) << report["notes"];
  EXPECT_GT(report["expectation"]["step_time_ns"], 0);
  EXPECT_EQ(report["expectation"]["gap"].is_null(), report["machine_use"]["disturbed"]);
  const auto& path = report["critical_path_ns"];
  std::int64_t sum = 0;
  for (const char* part : {"compute", "update", "input", "communication", "other", "idle"}) {
    sum += path[part].get<std::int64_t>();
  }
  EXPECT_GE(sum, report["step_time_ns"]["min"]);
  EXPECT_THAT(tandem({"run", write_small_scenario(), "-q"}).out, testing::HasSubstr("needs --topology FILE"));
}

TEST_F(RunCommand, NamesFlagsWithoutEffect) {
  write("two.yaml",
        "schema_version: 1\nworkload: {kind: mlp, hidden: [16], batch: 64}\nstrategy: {name: parameter_server}\n"
        "engine: {name: sim}\ntopology: {cluster: {node: hgx-h100, workers: 2}}\n"
        "devices: {type: gpu, per_worker: 2}\nsteps: 2\n");
  const Outcome outcome = tandem({"run", "two.yaml", "--nccl", "NCCL_ALGO=Ring", "--collectives", "message", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* note : {"has no effect here: --nccl NCCL_ALGO: no collective here is one of NCCL's",
                           "has no effect here: --collectives: no collective of this run depends on it"}) {
    EXPECT_THAT(outcome.out, HasSubstr(note));
  }
  EXPECT_THAT(tandem({"run", "two.yaml"}).out, testing::Not(HasSubstr("no effect")));
}

}  // namespace
}  // namespace tandem
