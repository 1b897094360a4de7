// Tasks of a parameter-server job that are lost: a worker, wherever it is, ends nothing but itself.
#include <fmt/format.h>

#include <random>

#include "tests/mpi/server_scenario.h"
#include "tests/mpi/tasks_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kSeed = 20261129;
constexpr double kMostSecondsToEnd = 60;  // on a machine that tests and builds beside

int kills() {
  const char* stated = std::getenv("TANDEM_LOST_RANKS");
  return stated != nullptr ? std::stoi(stated) : 4;
}

class LostTasks : public Tasks {
 protected:
  void SetUp() override {
    Tasks::SetUp();
    at_ = free_addresses(kTasks);
  }

  // Three workers, "0" to "2", and a server, "ps".
  void start_all(const std::vector<std::string>& command) {
    for (int task = 0; task < kWorkers; ++task) start(std::to_string(task), config(cluster(), "worker", task), command);
    start("ps", config(cluster(), "ps", 0), command);
  }
  nlohmann::json cluster() const { return {{"worker", {at_[0], at_[1], at_[2]}}, {"ps", {at_[3]}}}; }

  // Writes the example with servers, on three workers, with more of it.
  std::string scenario_with(const std::string& more) const {
    const std::string file = (folder_ / "servers.yaml").string();
    std::ofstream(file) << servers_of_three_workers(more);
    return file;
  }
  void start_scenario(const std::string& file, int steps, bool injects = false) {
    std::vector<std::string> command = {TANDEM_BINARY,         "run", file,    "--engine", "mpi", "--steps",
                                        std::to_string(steps), "-q",  "--json"};
    if (injects) command.emplace_back("--inject");
    start_all(command);
  }
  static double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  static constexpr int kWorkers = 3, kTasks = 4;
  Addresses at_;
};

TEST_F(LostTasks, AtRandomMomentsLeaveWholeUpdatesOnly) {
  std::mt19937 random(kSeed);
  double worst_s = 0;
  int came_in_time = 0;
  for (int i = 0; i < kills(); ++i) {
    at_ = free_addresses(kTasks);
    const std::string victim = std::to_string(1 + random() % 2);
    const double after_s = std::uniform_real_distribution<double>(0, 0.8)(random);
    SCOPED_TRACE(fmt::format("kill {}: worker {} after {:.3f} s", i, victim, after_s));
    start_all({TANDEM_LOST_RANKS_PROGRAM, "60", "4"});
    wait_for(victim, "begins");
    std::this_thread::sleep_for(std::chrono::duration<double>(after_s));
    const auto killed = std::chrono::steady_clock::now();
    signal(victim, SIGKILL);
    const Ended first = end_of("0");
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_THAT(first.out, AnyOf(StartsWith("1 killed, 2 left"), StartsWith("0 killed, 3 left")));
    for (const char* other : {"1", "2", "ps"}) {
      const Ended ended = end_of(other);
      EXPECT_EQ(ended.exit_code, other == victim ? 128 + SIGKILL : 0) << other << ": " << ended.err;
    }
    worst_s = std::max(worst_s, seconds_since(killed));
    if (first.out.starts_with("1 killed")) ++came_in_time;
    if (HasFailure()) return;
  }
  fmt::print("{} kills, {} before the worker had ended; the job ended at most {:.2f} s later\n", kills(), came_in_time,
             worst_s);
  EXPECT_LT(worst_s, kMostSecondsToEnd);
  EXPECT_GT(came_in_time, 0);
}

TEST_F(LostTasks, InjectionKillsOneTask) {
  start_scenario(scenario_with("faults: [fail: {worker: 2, step: 20}]\nrecovery: {policy: continue}"), 60, true);
  const Ended first = end_of("0");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(end_of("2").exit_code, 128 + SIGKILL);
  for (const char* other : {"1", "ps"}) EXPECT_EQ(end_of(other).exit_code, 0);
  EXPECT_THAT(first.err, HasSubstr("tandem: worker 2 at " + at_[2] + " was lost; the job goes on without it\n"));
  const nlohmann::json report = nlohmann::json::parse(first.out);
  EXPECT_THAT(report["notes"].get<std::vector<std::string>>(),
              Contains(AllOf(StartsWith("/job:worker/task:2 (worker 2 at " + at_[2] + ") was lost "),
                             HasSubstr(" s into the run; the others went on without it"))));
  EXPECT_GE(report["metrics"]["test_accuracy"].get<double>(), 0.85);
}

TEST_F(LostTasks, TheFirstWorkerOrAServerEndsTheJob) {
  for (const char* victim : {"0", "ps"}) {
    at_ = free_addresses(kTasks);
    start_all({TANDEM_LOST_RANKS_PROGRAM, "1000000"});
    wait_for(victim == std::string("ps") ? "0" : victim, "begins");
    signal(victim, SIGKILL);
    for (const char* other : {"0", "1", "2", "ps"}) {
      const Ended ended = end_of(other);
      EXPECT_EQ(ended.exit_code, other == std::string(victim) ? 128 + SIGKILL : 5);
      if (other == std::string(victim)) continue;
      EXPECT_THAT(ended.err,
                  HasSubstr(fmt::format("{} at {} has ended before", victim == std::string("ps") ? "ps 0" : "worker 0",
                                        at_[victim == std::string("ps") ? 3 : 0])));
    }
  }
}

// Without the policy, as before.
TEST_F(LostTasks, AnyWorkerEndsAJobThatDoesNotSayThatItGoesOn) {
  start_all({TANDEM_LOST_RANKS_PROGRAM, "1000000", "4", "ends"});
  wait_for("1", "begins");
  signal("1", SIGKILL);
  for (const char* other : {"0", "2", "ps"}) {
    const Ended ended = end_of(other);
    EXPECT_EQ(ended.exit_code, 5);
    EXPECT_THAT(ended.err, HasSubstr("worker 1 at " + at_[1] + " has ended before"));
  }
}

TEST_F(LostTasks, AWorkerThatIsSilentIsGivenUp) {
  start_all({TANDEM_LOST_RANKS_PROGRAM, "60", "4"});
  wait_for("2", "begins");
  signal("2", SIGSTOP);
  const Ended first = end_of("0");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, StartsWith("1 killed, 2 left"));
  for (const char* other : {"1", "ps"}) EXPECT_EQ(end_of(other).exit_code, 0);
  signal("2", SIGCONT);
  EXPECT_EQ(end_of("2").exit_code, 5) << "it finds itself alone";
}

}  // namespace
}  // namespace tandem
