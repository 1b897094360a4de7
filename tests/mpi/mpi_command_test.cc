// `tandem run --engine mpi` under mpirun: one report of all ranks, the values of the cpu engine, and how a job ends in
// which something goes wrong: in bounded time, once said, with the exit code of docs/exit-codes.md, and nothing left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kDigits = TANDEM_SOURCE_DIR "/scenarios/examples/digits-multi-worker.yaml";

struct Ended {
  int exit_code = -1;
  std::string out, err;
  double seconds = 0;
};

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class MpiCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-mpi-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    if (shell("exec " TANDEM_ON_RANKS " " TANDEM_MPIEXEC " " TANDEM_MPIEXEC_NUMBER " 1 true").exit_code == 77) {
      GTEST_SKIP() << read("stdout.txt");
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Ended shell(const std::string& command) {
    const auto start = std::chrono::steady_clock::now();
    const std::string all = "cd " + folder_.string() + " && (" + command + ") >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(all.c_str());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("stdout.txt"), read("stderr.txt"),
            taken.count()};
  }
  Ended tandem(const std::string& arguments) { return shell("exec " TANDEM_BINARY " " + arguments); }
  // The command of every rank is `wrapped`, in which $TANDEM is the program; each first notes its process.
  static std::string ranks(int count, const std::string& wrapped) {
    return "exec " TANDEM_ON_RANKS " " TANDEM_MPIEXEC " " TANDEM_MPIEXEC_NUMBER " " + std::to_string(count) +
           " sh -c 'echo $$ >> processes; RANK=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; TANDEM=" TANDEM_BINARY "; " +
           wrapped + "'";
  }
  Ended on_ranks(int count, const std::string& arguments) { return shell(ranks(count, "exec $TANDEM " + arguments)); }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  // None of the processes that ranks() has noted is there after a moment.
  void expect_no_orphan(int count) const {
    std::istringstream ids(read("processes"));
    int noted = 0;
    for (pid_t id = 0; ids >> id; ++noted) {
      for (int i = 0; i < 50 && kill(id, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_NE(kill(id, 0), 0) << "process " << id << " is still there";
    }
    EXPECT_EQ(noted, count);
  }
  std::string long_run() const { return "run " + kDigits + " --engine mpi --steps 1000000 -q --json -o report.json"; }

  std::filesystem::path folder_;
};

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

TEST_F(MpiCommand, AloneItNeedsNoMpi) {
  const Ended ended = tandem("run " + kDigits + " --engine mpi -q --steps 12 --json");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["settings"]["ranks"], "1");
}

TEST_F(MpiCommand, WhatSeveralProcessesCannotDoIsRefusedOnce) {
  const std::string servers = TANDEM_SOURCE_DIR "/scenarios/examples/digits-parameter-server.yaml";
  Ended ended = on_ranks(3, "run " + servers + " --engine mpi -q");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(count_of(ended.err, "strategy 'parameter_server' keeps variables on parameter servers"), 1) << ended.err;
  ended = on_ranks(2, "run " + kDigits + " --engine mpi -q --workers 3");
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_EQ(count_of(ended.err, "tandem: --workers 3 on 2 ranks: there is one worker a rank; launch 3"), 1)
      << ended.err;
  ended = on_ranks(2, "run nowhere.yaml --engine mpi -q");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(count_of(ended.err, "nowhere.yaml"), 1) << ended.err;
  ended = on_ranks(2, "compare " + kDigits + " --engines mpi,sim -q");
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_THAT(ended.err, HasSubstr("only `tandem run` spreads over processes, not `tandem compare`"));
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

TEST_F(MpiCommand, AFullDiskOfRank0EndsTheJob) {
  const Ended ended = on_ranks(2, "run " + kDigits + " --engine mpi -q --steps 12 -o /dev/full");
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_EQ(count_of(ended.err, "cannot write /dev/full"), 1) << ended.err;
  expect_no_orphan(2);
}

// mpirun itself ends the others and says who it was.
TEST_F(MpiCommand, ARankThatIsKilledEndsTheJob) {
  for (const char* when : {"0.3", "2"}) {
    std::filesystem::remove(folder_ / "processes");
    const Ended ended = shell(ranks(
        3, std::string("if [ $RANK = 1 ]; then (sleep ") + when + "; kill -KILL $$) & fi; exec $TANDEM " + long_run()));
    EXPECT_NE(ended.exit_code, 0);
    EXPECT_LT(ended.seconds, 30);
    EXPECT_THAT(ended.err, HasSubstr("rank 1"));
    EXPECT_FALSE(exists("report.json"));
    expect_no_orphan(3);
  }
}

TEST_F(MpiCommand, ARankThatStandsStillEndsTheJob) {
  for (const char* rank : {"0", "1"}) {
    std::filesystem::remove(folder_ / "processes");
    const Ended ended = shell(ranks(
        2, std::string("if [ $RANK = ") + rank + " ]; then (sleep 2; kill -STOP $$) & fi; exec $TANDEM " + long_run()));
    EXPECT_EQ(ended.exit_code, 5) << ended.err;
    EXPECT_LT(ended.seconds, 60);
    EXPECT_THAT(ended.err, AllOf(HasSubstr(std::string("tandem: rank ") + rank + " on "),
                                 HasSubstr("has not answered rank "), HasSubstr(" for 20 s; the job ends")));
    EXPECT_FALSE(exists("report.json"));
    expect_no_orphan(2);
  }
}

TEST_F(MpiCommand, InterruptingMpirunEndsAllRanks) {
  const Ended ended =
      shell("(" + ranks(2, "exec $TANDEM " + long_run()) + ") & MPIRUN=$!; sleep 2; kill -INT $MPIRUN; wait $MPIRUN");
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_LT(ended.seconds, 30);
  EXPECT_FALSE(exists("report.json"));
  expect_no_orphan(2);
}

}  // namespace
}  // namespace tandem
