// `tandem run --engine mpi` under mpirun: one report of all ranks, the values of the cpu engine, and how a job ends in
// which something goes wrong: in bounded time, once said, with the exit code of docs/exit-codes.md, and nothing left.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/mpi/mpi_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kOneDevice = TANDEM_SOURCE_DIR "/scenarios/examples/digits.yaml";
const std::string kServers = TANDEM_SOURCE_DIR "/scenarios/examples/digits-parameter-server.yaml";

TEST_F(MpiCommand, DigitsLearnWhatTheyLearnOnTheCpuEngine) {
  for (const int count : {2, 4}) {
    const std::string workers = std::to_string(count);
    const Ended measured = on_ranks(count, "run " + kDigits + " --engine mpi -q --json");
    ASSERT_EQ(measured.exit_code, 0) << measured.err;
    const nlohmann::json report = nlohmann::json::parse(measured.out);  // one document, of one rank
    const nlohmann::json expected =
        nlohmann::json::parse(tandem("run " + kDigits + " --engine cpu -q --json --workers " + workers).out);
    EXPECT_EQ(report["engine"], "mpi");
    EXPECT_EQ(report["workers"], count);
    EXPECT_EQ(report["replicas"], 2 * count);
    EXPECT_EQ(report["metrics"], expected["metrics"]);
    ASSERT_EQ(report["loss"].size(), expected["loss"].size());
    for (std::size_t i = 0; i < report["loss"].size(); ++i) {  // sums of replicas in another order
      const double loss = expected["loss"][i];
      EXPECT_NEAR(report["loss"][i].get<double>(), loss, 1e-4 * loss) << "step " << i;
    }
  }
}

// With one worker there is one order of updates, and the values are the same to the last bit.
TEST_F(MpiCommand, ParameterServersOfOtherProcessesLearnWhatTheyLearnOnTheCpuEngine) {
  Ended measured = on_ranks(2, "run " + kServers + " --engine mpi -q --json");
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  nlohmann::json report = nlohmann::json::parse(measured.out);
  const nlohmann::json expected =
      nlohmann::json::parse(tandem("run " + kServers + " --engine cpu -q --json --workers 1").out);
  EXPECT_EQ(report["loss"], expected["loss"]);
  EXPECT_EQ(report["metrics"], expected["metrics"]);
  EXPECT_EQ(report["parameter_servers"], 1);
  measured = on_ranks(3, "run " + kServers + " --engine mpi -q --json");
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  report = nlohmann::json::parse(measured.out);
  EXPECT_EQ(report["workers"], 2);
  EXPECT_GE(report["metrics"]["test_accuracy"].get<double>(), 0.85);
}

TEST_F(MpiCommand, WorkersEvaluateTogetherAndAnEvaluatorIsTheLastRank) {
  const Ended between =
      on_ranks(2, "run " + kDigits + " --engine mpi -q --json --set \"evaluation={every: 20 steps}\"");
  ASSERT_EQ(between.exit_code, 0) << between.err;
  const nlohmann::json report = nlohmann::json::parse(between.out);
  ASSERT_EQ(report["evaluations"]["done"].size(), 3U);
  const nlohmann::json last = report["evaluations"]["done"].back();
  EXPECT_EQ(last["step"], 60);
  EXPECT_DOUBLE_EQ(last["accuracy"].get<double>(), report["metrics"]["test_accuracy"].get<double>());

  const std::string evaluator = TANDEM_SOURCE_DIR "/scenarios/examples/digits-evaluator.yaml";
  const Ended beside = on_ranks(3, "run " + evaluator + " --engine mpi -q --json");
  ASSERT_EQ(beside.exit_code, 0) << beside.err;
  const nlohmann::json with_evaluator = nlohmann::json::parse(beside.out);
  EXPECT_EQ(with_evaluator["workers"], 2);
  const nlohmann::json& evaluations = with_evaluator["evaluations"];
  EXPECT_EQ(evaluations["on"], "evaluator");
  EXPECT_EQ(evaluations["done"].back()["step"], 60);
  EXPECT_DOUBLE_EQ(evaluations["done"].back()["accuracy"].get<double>(),
                   with_evaluator["metrics"]["test_accuracy"].get<double>());
}

TEST_F(MpiCommand, OneReportAndOneTraceHaveTheRecordsOfAllRanks) {
  const Ended ended = on_ranks(4, "run " + kDigits + " --engine mpi -q --steps 12 --trace trace.json -o report.txt");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(read("report.txt"), AllOf(HasSubstr("8 replicas on 4 workers"),
                                        HasSubstr("4 workers, one a rank of the launch; the scenario has 2"),
                                        HasSubstr("ranks 4 on 1 host"), HasSubstr("clock_error_us")));
  const nlohmann::json trace = nlohmann::json::parse(read("trace.json"));
  std::set<int> with_steps;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event.value("ph", "") == "X") with_steps.insert(event["pid"].get<int>());
  }
  EXPECT_EQ(with_steps.size(), 4U);
}

// All ranks measure, and rank 0 predicts: with as many workers, whatever the scenario says.
TEST_F(MpiCommand, CompareMeasuresOnAllRanks) {
  std::ofstream(folder_ / "cluster.yaml") << "schema_version: 1\nname: hosts\ncluster: {node: cpu-host, workers: 3}\n";
  const std::string compare = "compare " + kDigits + " --engines mpi,sim --steps 20 -q --json";
  Ended ended = on_ranks(3, compare + " --topology cluster.yaml");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const nlohmann::json comparison = nlohmann::json::parse(ended.out)["comparisons"][0];
  EXPECT_EQ(comparison["measured"]["engine"], "mpi");
  EXPECT_EQ(comparison["predicted"]["engine"], "sim");
  EXPECT_EQ(comparison["measured"]["workers"], 3);
  EXPECT_EQ(comparison["predicted"]["workers"], 3);
}

// Without a topology, the machines of the launch are calibrated first.
TEST_F(MpiCommand, ComparePredictsOnTheMachinesOfTheLaunch) {
  const Ended ended = on_ranks(2, "compare " + kDigits + " --engines mpi,sim --replicas 1 --steps 20 -q --json");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const nlohmann::json predicted = nlohmann::json::parse(ended.out)["comparisons"][0]["predicted"];
  EXPECT_EQ(predicted["topology"]["name"], "2 machines (quick calibration)");
  EXPECT_EQ(predicted["topology"]["provenance"], "measured");
}

TEST_F(MpiCommand, CalibratesTheMachinesOfTheLaunch) {
  Ended ended = on_ranks(3, "calibrate --engine mpi --quick --devices 1 -o cluster.yaml");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(count_of(ended.err, "calibrated 3 machines (quick calibration)"), 1) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("w2_"), HasSubstr("two workers to each other: "),
                               HasSubstr("2 workers to one: "), HasSubstr("simulated")));
  const std::string text = read("cluster.yaml");
  EXPECT_THAT(text, AllOf(HasSubstr("\"w2.nic0\""), HasSubstr("\"fabric.switch0\""),
                          HasSubstr("operation: all_reduce, devices: 2, nodes: 2"),
                          HasSubstr("operation: all_to_all, devices: 3, nodes: 3"),
                          HasSubstr("\"ranks\": \"3 on 1 host\""), HasSubstr("provenance: measured")));
  ended = tandem("run " + kDigits + " --engine sim --topology cluster.yaml --workers 3 -q --steps 12 --json");
  EXPECT_EQ(nlohmann::json::parse(ended.out)["workers"], 3) << ended.err;
}

TEST_F(MpiCommand, AloneItNeedsNoMpi) {
  const Ended ended = tandem("run " + kDigits + " --engine mpi -q --steps 12 --json");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["settings"]["ranks"], "1");
}

TEST_F(MpiCommand, WhatSeveralProcessesCannotDoIsRefusedOnce) {
  Ended ended = on_ranks(1, "run " + kServers + " --engine mpi -q --workers 2");
  EXPECT_EQ(ended.exit_code, 0) << "one process has all workers: " << ended.err;
  ended = on_ranks(2, "run " + kDigits + " --engine mpi -q --workers 3");
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_EQ(count_of(ended.err, "tandem: --workers 3 on 2 ranks: there is one worker a rank; launch 3"), 1)
      << ended.err;
  ended = on_ranks(2, "run nowhere.yaml --engine mpi -q");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(count_of(ended.err, "nowhere.yaml"), 1) << ended.err;
  ended = on_ranks(2, "collectives --engine mpi -q");
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_THAT(ended.err, HasSubstr("only `tandem run`, `tandem compare` and `tandem calibrate` spread over processes, "
                                   "not `tandem collectives`"));
  ended = on_ranks(2, "calibrate --engine mpi -q --device-type gpu -o cluster.yaml");
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_EQ(count_of(ended.err, "the devices of several ranks are CPUs"), 1) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cluster.yaml"));
}

TEST_F(MpiCommand, RanksThatCalibrateDifferentThingsAreNamed) {
  const Ended ended = shell(ranks(2, "exec $TANDEM calibrate --engine mpi -q --quick --devices $((1 + $RANK))"));
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_EQ(count_of(ended.err, "has another calibration than rank 0"), 1) << ended.err;
}

TEST_F(MpiCommand, RanksThatRunDifferentThingsAreNamed) {
  Ended ended = shell(ranks(2, "exec $TANDEM run " + kDigits + " --engine mpi -q --steps 2$RANK"));
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("tandem: rank 1 on "), HasSubstr("has another number of steps than rank 0 on "),
                    HasSubstr(": 21 instead of 20")));
  std::string other = "$TANDEM run " + kDigits + " --engine mpi -q --replicas $((RANK + 1))";
  ended = shell(ranks(2, "exec " + other));
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_EQ(count_of(ended.err, "has another list of workers than rank 0"), 1) << ended.err;
  ended = shell(
      ranks(2, "[ $RANK = 0 ] && FILE=" + kDigits + " || FILE=nowhere.yaml; exec $TANDEM run $FILE --engine mpi -q"));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_EQ(count_of(ended.err, "nowhere.yaml"), 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("rank 1 on "));
  expect_no_orphan(6);
}

TEST_F(MpiCommand, RanksWithOtherSubcommandsAreNamed) {
  const Ended ended = shell(ranks(2, "[ $RANK = 0 ] && ARGUMENTS=\"run " + kDigits +
                                         "\" || ARGUMENTS=\"calibrate --quick -o cluster.yaml\"; "
                                         "exec $TANDEM $ARGUMENTS --engine mpi -q"));
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_EQ(count_of(ended.err, "has another command than rank 0"), 1) << ended.err;
  EXPECT_THAT(ended.err, testing::ContainsRegex("tandem [0-9.]+ calibrate instead of tandem [0-9.]+ run; all ranks"));
  expect_no_orphan(2);
}

TEST_F(MpiCommand, RanksOfOtherBuildsAreNamed) {
  write_patched(TANDEM_BINARY, "tandem", std::string("\x14\0\0\0\3\0\0\0GNU\0", 12),
                std::string("\x14\0\0\0\3\0\0\0GNV\0", 12));
  const Ended ended = shell(ranks(2, "[ $RANK = 1 ] && TANDEM=./tandem; exec $TANDEM " + long_run()));
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_EQ(count_of(ended.err, "has another program build than rank 0"), 1) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr("tandem: rank 1 on "), HasSubstr(": none instead of ")));
  expect_no_orphan(2);
}

// A rank that runs by itself would write a report of its own.
TEST_F(MpiCommand, ARankWithAnEngineOfOneProcessIsNamed) {
  Ended ended = shell(ranks(2, "[ $RANK = 0 ] && ENGINE=mpi || ENGINE=cpu; exec $TANDEM run " + kDigits +
                                   " --engine $ENGINE -q --steps 12 --json -o report$RANK.json"));
  EXPECT_EQ(ended.exit_code, 4) << ended.err;
  EXPECT_LT(ended.seconds, 100);
  EXPECT_EQ(count_of(ended.err, "2 processes were launched together, and engine 'cpu' would run everything in each"), 1)
      << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("tandem: rank 1 on "));
  EXPECT_FALSE(exists("report0.json"));
  EXPECT_FALSE(exists("report1.json"));
  expect_no_orphan(2);
  ended = on_ranks(2, "calibrate --engine cpu --quick -q -o machine.yaml");
  EXPECT_EQ(ended.exit_code, 4) << ended.err;
  EXPECT_FALSE(exists("machine.yaml"));
  // Unless it is told to.
  ended = shell(ranks(2, "unset OMPI_COMM_WORLD_SIZE PMI_SIZE; exec $TANDEM run " + kOneDevice +
                             " --engine cpu -q --steps 12 --json -o report$RANK.json"));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(exists("report0.json") && exists("report1.json"));
}

TEST_F(MpiCommand, AFullDiskOfRank0EndsTheJob) {
  for (const std::string option : {"-o", "--html", "--trace"}) {
    std::filesystem::remove(folder_ / "processes");
    const Ended ended = on_ranks(2, "run " + kDigits + " --engine mpi -q --steps 12 " + option + " /dev/full");
    EXPECT_EQ(ended.exit_code, 5) << ended.err;
    EXPECT_EQ(count_of(ended.err, "cannot write /dev/full"), 1) << ended.err;
    EXPECT_THAT(ended.err, testing::ContainsRegex("tandem: rank 0 on .*: cannot write /dev/full: No space left"));
    expect_no_orphan(2);
  }
}

TEST_F(MpiCommand, TheVersionNamesTheMpiThatIsFound) {
  Ended ended = tandem("--version");
  EXPECT_THAT(ended.out, testing::ContainsRegex("\nmpi [^\n]+[0-9]+[.][0-9]+[^\n]* [(]built with "));
  EXPECT_THAT(ended.out, Not(HasSubstr("mpi not found")));
  // Copies, whose library needs an MPI that is not there.
  std::filesystem::create_directories(folder_ / "bin");
  std::filesystem::copy(TANDEM_BINARY, folder_ / "bin/tandem");
  write_patched(TANDEM_MPI_LIBRARY, "lib/tandem/tandem_mpi.so", "libmpi", "libnpi");
  ended = shell("bin/tandem --version");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("\nmpi not found (built with "));
  ended = shell(ranks(2, "exec bin/tandem run " + kDigits + " --engine mpi -q"));
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("no MPI is found (libnpi"), HasSubstr("Open MPI"), HasSubstr("MPICH")));
}

// mpirun itself ends the others and says who it was: before the rank has joined, in the middle of the run, and while
// the others wait in a collective for a rank that was stopped first.
TEST_F(MpiCommand, ARankThatIsKilledEndsTheJob) {
  expect_killed(long_run_in_which(3, 1, "sleep 2; kill -KILL $$"), 3, 1);
  expect_killed(long_run_in_which(3, 1, "(sleep 2; kill -KILL $$) &"), 3, 1);
  expect_killed(long_run_in_which(3, 1, "(sleep 2; kill -STOP $$; sleep 1; kill -KILL $$) &"), 3, 1);
}

TEST_F(MpiCommand, AServerOrAWorkerThatIsKilledEndsTheJob) {
  for (const int rank : {0, 2}) {  // the first worker, and the server
    expect_killed(long_run_in_which(3, rank, "(sleep 2; kill -KILL $$) &", kServers), 3, rank);
  }
}

// The report was complete before.
TEST_F(MpiCommand, ARankThatIsKilledAfterTheRunLeavesTheReport) {
  const Ended ended =
      shell(ranks(2, "$TANDEM run " + kDigits +
                         " --engine mpi --steps 20 -q --json -o report.json; [ $RANK = 1 ] && kill -KILL $$"));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(read("report.json"))["workers"], 2);
  expect_no_orphan(2);
}

// MPI waits for a rank that stops before it has begun, or while it does, and tells nobody.
TEST_F(MpiCommand, ARankThatNeverBeginsEndsTheJob) {
  const Ended ended =
      shell(ranks(2, "export TANDEM_MPI_JOIN_S=5; [ $RANK = 1 ] && kill -STOP $$; exec $TANDEM " + long_run()));
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_LT(ended.seconds, 60);
  EXPECT_THAT(ended.err,
              testing::ContainsRegex(
                  "tandem: rank 0 on .* has waited 5 s for all 2 ranks of the launch to begin; the job ends"));
  expect_no_orphan(2);
}

TEST_F(MpiCommand, ATimeToBeginThatIsNoneIsRefused) {
  const Ended ended = shell(ranks(2, "TANDEM_MPI_JOIN_S=soon exec $TANDEM " + long_run()));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.err, HasSubstr("TANDEM_MPI_JOIN_S is 'soon', must be a number of seconds greater than 0"));
  expect_no_orphan(2);
}

// What a rank does once the streams of its run have their threads, and so MPI has begun everywhere. Its process, $$,
// has become the program by then.
std::string in_the_run(const std::string& action) {
  return "(i=0; while [ $(ls /proc/$$/task | wc -l) -lt 7 ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done; "
         "sleep 1; " +
         action + ") &";
}

TEST_F(MpiCommand, ARankThatStandsStillEndsTheJob) {
  const std::string stop_it = in_the_run("kill -STOP $$");
  struct Case {
    int rank;
    const std::string& scenario;
  };
  for (const Case& each : {Case{0, kDigits}, Case{1, kDigits}, Case{1, kServers}}) {  // the last is the server
    const Ended ended = long_run_in_which(2, each.rank, stop_it, each.scenario);
    EXPECT_EQ(ended.exit_code, 5) << ended.err;
    EXPECT_LT(ended.seconds, 120);
    EXPECT_THAT(ended.err, AllOf(HasSubstr("tandem: rank " + std::to_string(each.rank) + " on "),
                                 HasSubstr("has not answered rank "), HasSubstr(" for 20 s; the job ends")));
    EXPECT_FALSE(exists("report.json"));
    expect_no_orphan(2);
  }
}

// Open MPI's mpirun can leave the other ranks alone when one has died.
TEST_F(MpiCommand, ARankThatDiesUnnoticedByTheLauncherEndsTheJob) {
  const Ended ended = long_run_in_which(3, 1, in_the_run("kill -KILL $$"), kDigits, "OMPI_MCA_orte_enable_recovery=1");
  EXPECT_LT(ended.seconds, 120);
  EXPECT_THAT(ended.err, HasSubstr("rank 1"));
  if (ended.err.find("has ended before") == std::string::npos) GTEST_SKIP() << "mpirun ends all ranks";
  EXPECT_THAT(ended.err, testing::ContainsRegex("tandem: rank 1 on .* at .* has ended before the job"));
  EXPECT_FALSE(exists("report.json"));
  expect_no_orphan(3);
}

TEST_F(MpiCommand, ARankThatIsInterruptedEndsTheJob) {
  struct Case {
    int rank;
    const char* signal;
  };
  for (const Case& each : {Case{0, "INT"}, Case{1, "INT"}, Case{2, "TERM"}}) {
    const Ended ended = long_run_in_which(3, each.rank, in_the_run(std::string("kill -") + each.signal + " $$"));
    EXPECT_EQ(ended.exit_code, 130) << ended.err;
    EXPECT_LT(ended.seconds, 90);
    EXPECT_EQ(count_of(ended.err, "tandem: "), 1) << ended.err;
    EXPECT_THAT(ended.err, testing::ContainsRegex("tandem: rank " + std::to_string(each.rank) +
                                                  " on .* was interrupted \\(SIG" + each.signal + "\\); the job ends"));
    EXPECT_FALSE(exists("report.json"));
    expect_no_orphan(3);
  }
}

// Rank 0 waits for rank 1, which has not begun.
TEST_F(MpiCommand, ARankThatIsInterruptedBeforeAllHaveBegunEndsTheJob) {
  const Ended ended = long_run_in_which(
      2, 1, "(sleep 3; kill -INT $(sed -n 1p processes); kill -INT $(sed -n 2p processes)) & sleep 60");
  EXPECT_EQ(ended.exit_code, 130) << ended.err;
  EXPECT_LT(ended.seconds, 50);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("tandem: rank 0 on "),
                               HasSubstr("was interrupted (SIGINT) before all 2 ranks of the launch had begun")));
  expect_no_orphan(2);
}

// The exit code is mpirun's own.
TEST_F(MpiCommand, InterruptingMpirunEndsAllRanks) {
  for (const std::string signal : {"INT", "TERM"}) {
    std::filesystem::remove(folder_ / "processes");
    std::filesystem::remove(folder_ / "begun1");
    const Ended ended = shell("(" + ranks(2, in_the_run("echo > begun$RANK") + "\nexec $TANDEM " + long_run()) +
                              ") & MPIRUN=$!; i=0; while [ ! -e begun1 ] && [ $i -lt 400 ]; do sleep 0.1; "
                              "i=$((i + 1)); done; sleep 2; kill -" +
                              signal + " $MPIRUN; wait $MPIRUN");
    EXPECT_NE(ended.exit_code, 0);
    EXPECT_LT(ended.seconds, 100);
    // One, unless rank 0 is so slow to end the job that rank 1 does.
    const int messages = count_of(ended.err, "was interrupted (SIGTERM); the job ends");
    EXPECT_TRUE(messages == 1 || messages == 2) << ended.err;
    EXPECT_FALSE(exists("report.json"));
    expect_no_orphan(2);
  }
}

}  // namespace
}  // namespace tandem
