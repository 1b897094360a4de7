// Ranks of a parameter-server job under mpirun --enable-recovery: a worker that is killed ends nothing but itself.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/mpi/mpi_testing.h"
#include "tests/mpi/server_scenario.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kLostSeed = 20261129;
constexpr double kMostSecondsOfJob = 60;  // on a machine that tests and builds beside

class LostRanks : public MpiCommand {
 protected:
  void SetUp() override {
    MpiCommand::SetUp();
    if (IsSkipped()) return;
    shell(kept_ranks(2, "if [ $RANK = 1 ]; then kill -KILL $$; fi; sleep 1; : > alive"));
    if (!exists("alive")) GTEST_SKIP() << "this mpirun ends all ranks with the one that is killed";
    std::filesystem::remove(folder_ / "processes");
  }

  // The command of every rank, where the launcher leaves the others alone.
  static std::string kept_ranks(int count, const std::string& wrapped) {
    return "export OMPI_MCA_orte_enable_recovery=1; " + ranks(count, wrapped);
  }
  // Kills this rank so long after it has begun to train.
  static std::string kill_after(double seconds) {
    return fmt::format("(until grep -q begins err.$RANK; do sleep 0.02; done; sleep {:.3f}; kill -KILL $$) &", seconds);
  }
  // Writes the example with servers, on three workers, with more of it.
  std::string scenario_with(const std::string& more) const {
    std::ofstream(folder_ / "servers.yaml") << servers_of_three_workers(more);
    return "servers.yaml";
  }
};

TEST_F(LostRanks, AtRandomMomentsLeaveWholeUpdatesOnly) {
  const char* stated = std::getenv("TANDEM_LOST_RANKS");
  const int kills = stated != nullptr ? std::stoi(stated) : 3;
  std::mt19937 random(kLostSeed);
  double worst_s = 0;
  int came_in_time = 0;
  for (int i = 0; i < kills; ++i) {
    const int victim = 1 + static_cast<int>(random() % 2);
    const double after_s = std::uniform_real_distribution<double>(0, 0.8)(random);
    SCOPED_TRACE(fmt::format("kill {}: rank {} after {:.3f} s", i, victim, after_s));
    for (const char* file : {"err.0", "err.1", "err.2", "err.3", "processes"}) std::filesystem::remove(folder_ / file);
    const Ended ended =
        shell(kept_ranks(4, fmt::format(": > err.$RANK; if [ $RANK = {} ]; then {}\nfi; exec " TANDEM_LOST_RANKS_PROGRAM
                                        " 60 4 2>err.$RANK",
                                        victim, kill_after(after_s))));
    EXPECT_EQ(ended.exit_code, 0) << ended.err << read("err.0");
    EXPECT_THAT(ended.out, AnyOf(StartsWith("1 killed, 2 left"), StartsWith("0 killed, 3 left"))) << read("err.0");
    expect_no_orphan(4);
    worst_s = std::max(worst_s, ended.seconds);
    if (ended.out.starts_with("1 killed")) ++came_in_time;
    if (HasFailure()) return;
  }
  fmt::print("{} kills, {} before the rank had ended; the longest job took {:.2f} s\n", kills, came_in_time, worst_s);
  EXPECT_LT(worst_s, kMostSecondsOfJob);
  EXPECT_GT(came_in_time, 0);
}

TEST_F(LostRanks, InjectionKillsOneRank) {
  const std::string file = scenario_with("faults: [fail: {worker: 2, step: 20}]\nrecovery: {policy: continue}");
  const Ended ended = shell(kept_ranks(4, "exec $TANDEM run " + file + " --engine mpi --inject --json -q"));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("tandem: rank 2 on "));
  const nlohmann::json report = nlohmann::json::parse(ended.out);
  EXPECT_EQ(report["settings"]["connections"], "TCP");
  EXPECT_THAT(report["notes"].get<std::vector<std::string>>(),
              Contains(AllOf(StartsWith("/job:worker/task:2 (rank 2 on "), HasSubstr(") was lost "))));
  EXPECT_GE(report["metrics"]["test_accuracy"].get<double>(), 0.85);
}

TEST_F(LostRanks, InjectionNeedsALauncherThatLeavesTheOthersAlone) {
  const std::string file = scenario_with("faults: [fail: {worker: 2, step: 20}]\nrecovery: {policy: continue}");
  const Ended ended = on_ranks(4, "run " + file + " --engine mpi --inject --json -q");
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_THAT(ended.err, HasSubstr("mpirun --enable-recovery leaves them alone"));
}

TEST_F(LostRanks, AReportSaysThatTheJobWouldHaveEnded) {
  const std::string file = scenario_with("recovery: {policy: continue}");
  const Ended ended = on_ranks(4, "run " + file + " --engine mpi --steps 12 --set expect={} --json -q");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(nlohmann::json::parse(ended.out)["notes"].get<std::vector<std::string>>(),
              Contains(HasSubstr("a rank that is lost ends this job")));
}

}  // namespace
}  // namespace tandem
