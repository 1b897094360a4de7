// tandem sweep on several ranks, which share its points.
#include <fmt/format.h>

#include "tests/cli/sweep_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Sweep, RanksShareThePointsAndTheFirstOnePutsThemTogether) {
  write_small();
  const Outcome alone = tandem({"sweep", "small.yaml", "--json", "--no-results"});
  const Outcome second = ranked(1, 2, {"sweep", "small.yaml", "--json"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, "");
  EXPECT_EQ(lines_of("small.sweep.jsonl.rank1"), 3);
  const Outcome first = ranked(0, 2, {"sweep", "small.yaml", "--json"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, alone.out);
  EXPECT_EQ(lines_of("small.sweep.jsonl"), 5);
  EXPECT_FALSE(exists("small.sweep.jsonl.rank1"));
}

TEST_F(Sweep, TheFirstRankWaitsForWhatAnotherOneLostInAnEarlierSweep) {
  write_small();
  ASSERT_EQ(ranked(1, 2, {"sweep", "small.yaml"}).exit_code, 0);
  // The second rank's first point was lost; it has not come yet to run it again.
  std::string text = read("small.sweep.jsonl.rank1");
  const std::size_t line = text.find('\n') + 1;
  auto lost = nlohmann::ordered_json::parse(text.substr(line, text.find('\n', line) - line));
  lost["state"] = "lost";
  lost["problem"] = "its process was ended";
  write("small.sweep.jsonl.rank1", text.replace(line, text.find('\n', line) - line, lost.dump()));
  const Outcome first = ranked(0, 2, {"sweep", "small.yaml", "--wait", "0.3"});
  EXPECT_EQ(first.exit_code, 5);
  EXPECT_THAT(first.err, HasSubstr("1 points of other ranks are missing"));
  EXPECT_TRUE(exists("small.sweep.jsonl.rank1")) << "it is in use";
  ASSERT_EQ(ranked(1, 2, {"sweep", "small.yaml"}).exit_code, 0);
  EXPECT_EQ(ranked(0, 2, {"sweep", "small.yaml"}).exit_code, 0);
  EXPECT_EQ(lines_of("small.sweep.jsonl"), 5);
}

TEST_F(Sweep, TheFirstRankWaitsForTheOthersNoLongerThanItShould) {
  write_small();
  const Outcome first = ranked(0, 2, {"sweep", "small.yaml", "--wait", "0.3"});
  EXPECT_EQ(first.exit_code, 5);
  EXPECT_THAT(first.err, AllOf(HasSubstr("tandem: 2 points are left; small.sweep.jsonl has the others"),
                               HasSubstr("2 points of other ranks are missing, and nothing came for 0 s")));
  EXPECT_EQ(lines_of("small.sweep.jsonl"), 3);
  EXPECT_EQ(ranked(2, 2, {"sweep", "small.yaml"}).exit_code, 5);
}

TEST_F(Sweep, AnInterruptedFirstRankShowsWhatTheOthersHaveFinishedMeanwhile) {
  write_long();
  ASSERT_EQ(ranked(1, 2, {"sweep", "small.yaml"}).exit_code, 0);
  const std::string finished = read("small.sweep.jsonl.rank1");
  ASSERT_EQ(lines_of("small.sweep.jsonl.rank1"), 21);
  std::filesystem::remove(folder() / "small.sweep.jsonl.rank1");
  be_rank(0, 2);
  bool has_come = false;
  for (double after_s = 0.5; !has_come; after_s *= 1.5) {
    ASSERT_LT(after_s, 30) << "the first rank finishes points";
    std::filesystem::remove(folder() / "small.sweep.jsonl");
    std::jthread other([&](const std::stop_token& stop) {
      while (!stop.stop_requested() && lines_of("small.sweep.jsonl") < 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      if (stop.stop_requested()) return;
      write("small.sweep.jsonl.rank1", finished);
      has_come = true;
    });
    const Outcome outcome = tandem_interrupted({"sweep", "small.yaml", "-j", "1"}, after_s);
    other.request_stop();
    other.join();
    if (!has_come) continue;
    ASSERT_EQ(outcome.exit_code, 130) << outcome.err;
    const int left = 20 - (lines_of("small.sweep.jsonl") - 1);
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("tandem: {} points are left", left)));
    EXPECT_THAT(outcome.out, HasSubstr(fmt::format("small: {} of 40 points", 40 - left)));
  }
}

TEST_F(Sweep, RanksSayOnceWhatAllOfThemSee) {
  write_small();
  EXPECT_THAT(ranked(0, 3, {"sweep", "small.yaml", "--dry-run"}).out, HasSubstr("4 not run"));
  EXPECT_EQ(ranked(1, 3, {"sweep", "small.yaml", "--dry-run"}).out, "");
  write_sweep("  values: {workload.batch: []}\n");
  const Outcome first = ranked(0, 3, {"sweep", "small.yaml"});
  EXPECT_EQ(first.exit_code, 3);
  EXPECT_THAT(first.err, HasSubstr("has no values; needs at least one"));
  const Outcome second = ranked(1, 3, {"sweep", "small.yaml"});
  EXPECT_EQ(second.exit_code, 0) << "so that no launcher kills the first rank before it has said what is wrong";
  EXPECT_EQ(second.err, "");
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);  // the first one of another host
  EXPECT_THAT(tandem({"sweep", "small.yaml"}).err, HasSubstr("has no values; needs at least one"));
}

TEST_F(Sweep, RanksOfALauncherGiveTheSameTableAndGoOnAfterTheirEnd) {
  write_long();
  const Outcome alone = tandem({"sweep", "small.yaml", "--json", "--no-results"});
  const Outcome table = launched(3, "sweep small.yaml --dry-run");
  if (table.exit_code == 77) GTEST_SKIP() << table.out;
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_EQ(table.out, tandem({"sweep", "small.yaml", "--dry-run"}).out);
  const auto finished = [this] {
    int lines = 0;
    for (const char* end : {"", ".rank1", ".rank2"}) {
      lines += std::max(0, lines_of(std::string("small.sweep.jsonl") + end) - 1);
    }
    return lines;
  };
  for (double at_most_s = 1; finished() == 0; at_most_s *= 1.5) {
    ASSERT_LT(at_most_s, 60) << "finished points are kept";
    launched(3, "sweep small.yaml -j 1", at_most_s);
  }
  const Outcome rest = launched(2, "sweep small.yaml --json");
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.out, alone.out);
  EXPECT_EQ(lines_of("small.sweep.jsonl"), 41) << "each point once";
  for (const char* name : {"small.sweep.jsonl.rank1", "small.sweep.jsonl.rank2"}) EXPECT_FALSE(exists(name)) << name;
}

}  // namespace
}  // namespace tandem
