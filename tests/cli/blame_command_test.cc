#include <filesystem>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class BlameCommand : public CommandLine {
 protected:
  static std::string published(const std::string& file) {
    return TANDEM_SOURCE_DIR "/tests/scenarios/import/stragglers/" + file;
  }
};

TEST_F(BlameCommand, SaysWhoIsSlow) {
  const Outcome outcome = tandem({"blame", published("ST.csv.gz"), published("ST.meta.yaml")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(outcome.out, StartsWith("ST: 6784 ops of 8 workers (2 DP ranks x 4 stages), 32 steps\n"
                                      "slowdown 1.179: a step takes 2.173 s, and would take 1.843 s if all ops of a "
                                      "kind took equally long\n"
                                      "recorded 2.214 s, 1.9 % more: ops began later than they could\n"));
  EXPECT_THAT(outcome.out, HasSubstr("stage 3      1.232\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("\nforward-compute +1\\.08[78]\n"));
  EXPECT_THAT(outcome.out, HasSubstr("stage 3  1.17  1.18\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  ... and 20 more (--all)"));
  EXPECT_THAT(outcome.out, ContainsRegex("\nstage 3 +1\\.771 s +12[12]\\.[0-9] %\n"));
  const Outcome all = tandem({"blame", published("ST.csv.gz"), "--all"});
  EXPECT_THAT(all.out, AllOf(HasSubstr("step 1012"), Not(HasSubstr("--all"))));
}

TEST_F(BlameCommand, NamesStepsAsTheProfilerDid) {
  std::vector<std::string> arguments{"blame", "--all"};
  for (const char* rank : {"0", "1", "2", "3"}) {
    arguments.push_back(TANDEM_SOURCE_DIR "/docs/examples/slow-rank/rank" + std::string(rank) + ".json");
  }
  const Outcome outcome = tandem(arguments);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("\nstep 5 +1[.]25"));
  EXPECT_THAT(outcome.out, ContainsRegex("\nstep 6 +1[.]25"));
}

TEST_F(BlameCommand, StoresWhatReportShowsAgain) {
  const Outcome text = tandem({"blame", published("ST.csv.gz"), published("ST.meta.yaml")});
  const Outcome stored = tandem(
      {"blame", published("ST.csv.gz"), published("ST.meta.yaml"), "--json", "-o", "st.json", "--html", "st.html"});
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  const nlohmann::json document = nlohmann::json::parse(read("st.json"));
  EXPECT_EQ(document.at("kind"), "blame");
  EXPECT_EQ(document.at("worst_rank"), 7);
  EXPECT_EQ(document.at("by_worker").size(), 8u);
  EXPECT_EQ(document.at("by_stage").at(3).at("by_step").size(), 32u);
  EXPECT_EQ(tandem({"report", "st.json"}).out, text.out);
  EXPECT_THAT(read("st.html"), AllOf(HasSubstr("ST: slowdown 1.179"), HasSubstr("Slowdown by worker")));
  EXPECT_EQ(tandem({"report", "st.json", "--html", "again.html"}).exit_code, 0);
  EXPECT_EQ(read("again.html"), read("st.html"));
}

TEST_F(BlameCommand, ReadsTracesOfTheRanks) {
  const std::string folder = TANDEM_SOURCE_DIR "/docs/examples/slow-rank/rank";
  const Outcome outcome =
      tandem({"blame", folder + "0.json", folder + "1.json", folder + "2.json", folder + "3.json", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json document = outcome.json();
  EXPECT_NEAR(document.at("slowdown"), 1.25, 1e-6);
  EXPECT_EQ(document.at("worst_rank"), 2);
  EXPECT_EQ(document.at("step_time_ns").at("ideal"), 2'400'000);
}

TEST_F(BlameCommand, ManyDpRanksAreCharacters) {
  std::string table = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id\n";
  for (int replica = 0; replica < 70; ++replica) {
    const std::string rank = std::to_string(replica);
    table += rank + ",0," + rank + ",1,forward-compute,0," + (replica == 65 ? "2" : "1") + ",0\n";
  }
  const Outcome outcome = tandem({"blame", write("wide.csv", table)});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("DP ranks 0 to 63\n  stage 0   " + std::string(64, '.') + "\n"));
  EXPECT_THAT(outcome.out, HasSubstr("DP ranks 64 to 69\n  stage 0   .@....\n"));
}

}  // namespace
}  // namespace tandem
