// A job of several tasks that is killed, and goes on from its last checkpoint when all of them are started again.
#include "tests/mpi/tasks_testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Tasks, AJobWhoseWorkerIsKilledGoesOnWhenItIsStartedAgain) {
  constexpr int kTasks = 2;  // those of the scenario
  const auto run = [this](const std::vector<std::string>& more) {
    const Addresses at = free_addresses(kTasks);
    std::vector<std::string> command = {TANDEM_BINARY, "run", kDigits,      "--engine", "mpi",   "--steps",
                                        "12",          "-q",  "--replicas", "1",        "--json"};
    command.insert(command.end(), more.begin(), more.end());
    for (int i = 0; i < kTasks; ++i) start(std::to_string(i), config(workers(at), "worker", i), command);
    std::vector<Ended> ends;
    for (int i = 0; i < kTasks; ++i) ends.push_back(end_of(std::to_string(i)));
    return ends;
  };
  const Ended undisturbed = run({})[0];
  ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
  const nlohmann::json whole = nlohmann::json::parse(undisturbed.out);
  const std::string directory = (folder_ / "saved").string();
  for (int lost = 0; lost < kTasks; ++lost) {
    for (const int step : {3, 10}) {
      const std::string worker = std::to_string(lost);
      SCOPED_TRACE("worker " + worker + " before step " + std::to_string(step));
      const std::vector<std::string> more = {
          "--inject", "--set", "faults=[{fail: {worker: " + worker + ", step: " + std::to_string(step) + "}}]", "--set",
          "recovery.checkpoint={every: 2 steps, directory: " + directory + "}"};
      const std::vector<Ended> first = run(more);
      for (int i = 0; i < kTasks; ++i) {
        const Ended& end = first[static_cast<std::size_t>(i)];
        EXPECT_EQ(end.exit_code, i == lost ? 128 + SIGKILL : 5) << end.err;
        EXPECT_THAT(end.err, i == lost ? testing::Matcher<std::string>("") : HasSubstr("worker " + worker + " at "));
      }
      const Ended second = run(more)[0];
      ASSERT_EQ(second.exit_code, 0) << second.err;
      const nlohmann::json report = nlohmann::json::parse(second.out);
      EXPECT_EQ(report["loss"], whole["loss"]);
      EXPECT_EQ(report["metrics"], whole["metrics"]);
      EXPECT_THAT(report["faults"][0].get<std::string>(), StartsWith("resumed after step "));
      EXPECT_FALSE(std::filesystem::exists(directory));
    }
  }
}

}  // namespace
}  // namespace tandem
