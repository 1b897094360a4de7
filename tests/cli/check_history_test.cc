// `tandem check --history` and `tandem history`.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

class CheckHistory : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    write_small_scenario();
  }
  Outcome check(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {"check", "small.yaml", "--history", "h.jsonl", "-q"};
    command.insert(command.end(), more.begin(), more.end());
    return tandem(command);
  }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::istringstream in(read("h.jsonl"));
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  // A history of this machine with so many launches whose steps take this long, within a thousandth.
  void write_history(int count, std::int64_t step_ns) const {
    std::filesystem::remove(folder() / "h.jsonl");
    ASSERT_THAT(check().exit_code, 6) << "the first launch has no level";
    nlohmann::json line = lines().front();
    std::string text;
    for (int i = 0; i < count; ++i) {
      line["step_time_ns"]["mean"] = line["step_time_ns"]["median"] = step_ns + (i % 3 - 1) * step_ns / 1000;
      line["disturbed"] = false;
      text += line.dump() + "\n";
    }
    write("h.jsonl", text);
  }
};

TEST_F(CheckHistory, AppendsALineForEachLaunch) {
  const Outcome first = check({"--json", "--commit", "0123abc"});
  EXPECT_EQ(first.exit_code, 6) << first.err;
  EXPECT_EQ(first.json()["kind"], "history_check");
  EXPECT_EQ(first.json()["verdict"], "inconclusive");
  EXPECT_EQ(first.json()["known_launches"], 0);
  EXPECT_EQ(check().exit_code, 6);
  const auto all = lines();
  ASSERT_GE(all.size(), 2U) << "more if others disturbed it";
  EXPECT_EQ(all[0]["kind"], "launch");
  EXPECT_EQ(all[0]["commit"], "0123abc");
  EXPECT_GT(all[0]["step_time_ns"]["median"], 0);
  EXPECT_EQ(all[0]["step_time_ns"]["samples"], 10);
  EXPECT_FALSE(all[0]["machine"].get<std::string>().empty());
  EXPECT_EQ(all[0]["machine"], all[1]["machine"]);
  EXPECT_THAT(all[0]["date"].get<std::string>(), testing::MatchesRegex("20..-..-..T..:..:..Z"));
}

TEST_F(CheckHistory, ALaunchThatMissesAnExpectationIsKeptAndNotMet) {
  write_small_scenario("expect: {max_step_time: 1ns}\n");
  const Outcome outcome = check({"--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(outcome.json()["expectations_not_met"].size(), 1U);
  EXPECT_THAT(outcome.err, HasSubstr("expectation not met: the step time is "));
  EXPECT_GE(lines().size(), 1U);
}

TEST_F(CheckHistory, ConfirmsASuspectByTwoMoreLaunches) {
  write_history(20, 1000);
  const Outcome slower = check({"--json"});
  const auto json = slower.json();
  ASSERT_EQ(json["launches"].size(), 3U);
  bool is_disturbed = false;
  for (const auto& launch : json["launches"]) is_disturbed |= launch["disturbed"].get<bool>();
  EXPECT_EQ(slower.exit_code, is_disturbed ? 6 : 1);
  EXPECT_EQ(json["verdict"], is_disturbed ? "inconclusive" : "regressed");
  EXPECT_GE(lines().size(), 23U);
  write_history(20, 3'600'000'000'000);
  const Outcome faster = check({"--json"});
  EXPECT_EQ(faster.exit_code, 0);
  EXPECT_EQ(faster.json()["verdict"], "improved");
  EXPECT_EQ(faster.json()["launches"].size(), 3U);
}

TEST_F(CheckHistory, ANewLevelCanBeAccepted) {
  write_history(20, 1000);
  const Outcome accepted = check({"--update", "--json"});
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_EQ(lines().back()["accepted"], true);
  const Outcome next = check({"--json"});
  EXPECT_EQ(next.exit_code, 6);
  EXPECT_LE(next.json()["known_launches"], 1) << "a level of its own begins; none if that launch was disturbed";
}

TEST_F(CheckHistory, OfAnotherMachineOrScenarioSaysNothing) {
  write_history(20, 1000);
  const std::string text = read("h.jsonl");
  std::string moved;
  for (auto line : lines()) {
    line["machine"] = "another machine";
    moved += line.dump() + "\n";
  }
  write("h.jsonl", moved);
  EXPECT_EQ(check({"--json"}).json()["known_launches"], 0);
  write("h.jsonl", text);
  write_small_scenario("seed_of_nobody: 1\n");
  EXPECT_EQ(check().exit_code, 3);
  write_small_scenario("# a comment is no content\n");
  EXPECT_EQ(check({"--json"}).json()["known_launches"], 20);
}

TEST_F(CheckHistory, LosesNoLineWhenTwoJobsWriteAtOnce) {
  std::vector<pid_t> jobs;
  for (int job = 0; job < 4; ++job) {
    const std::string command = "cd " + folder().string() +
                                " && exec " TANDEM_BINARY " check small.yaml --history h.jsonl -q --commit " +
                                std::to_string(job) + " > /dev/null 2>&1";
    jobs.push_back(fork());
    if (jobs.back() == 0) _exit(WEXITSTATUS(std::system(command.c_str())));
  }
  for (const pid_t job : jobs) {
    int status = 0;
    waitpid(job, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 6);
  }
  std::map<std::string, int> commits;
  for (const auto& line : lines()) ++commits[line["commit"]];
  EXPECT_EQ(commits.size(), 4U);
}

TEST_F(CheckHistory, RefusesFilesThatAreNoHistory) {
  write("h.jsonl", "hello\n");
  EXPECT_EQ(tandem({"history", "h.jsonl"}).exit_code, 3);
  const std::string problem =
      "h.jsonl:1:1: is no history; `tandem check --history` begins one if there is no such file\n";
  EXPECT_EQ(tandem({"history", "h.jsonl"}).err, problem);
  const Outcome text = check();
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_EQ(text.err, problem);
  EXPECT_EQ(read("h.jsonl"), "hello\n") << "as it was";
  write("h.jsonl", "");
  EXPECT_THAT(tandem({"history", "h.jsonl"}).err, HasSubstr("h.jsonl:1:1: has no launch"));
  EXPECT_THAT(tandem({"history", "nowhere.jsonl"}).err, HasSubstr("no such history"));
  write("h.jsonl", "{\"schema_version\":1,\"kind\"");
  const Outcome cut = check();
  EXPECT_EQ(cut.exit_code, 3);
  EXPECT_EQ(cut.err, "h.jsonl:1:1: is cut: it does not end in a newline; remove the line\n");
  EXPECT_EQ(read("h.jsonl"), "{\"schema_version\":1,\"kind\"") << "as it was";
  const Outcome device = tandem({"check", "small.yaml", "--history", "/dev/full", "-q"});
  EXPECT_EQ(device.exit_code, 3);
  EXPECT_THAT(device.err, HasSubstr("/dev/full: is not a file"));
  const Outcome folder = tandem({"check", "small.yaml", "--history", "no/such/folder.jsonl", "-q"});
  EXPECT_EQ(folder.exit_code, 5);
  EXPECT_THAT(folder.err, HasSubstr("cannot write no/such/folder.jsonl"));
}

// Times of simulations repeat: each is beside the one before it.
TEST_F(CheckHistory, KeepsTheExactTimesOfSimulationsWithTheirCommits) {
  const auto simulate = [this](const char* commit, std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"check", example("mesh.yaml"), "--history", "h.jsonl", "-q", "--json", "--commit", commit});
    return tandem(more);
  };
  const Outcome first = simulate("aaaa");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.json()["kind"], "history_check");
  EXPECT_EQ(first.json()["exact"], true);
  EXPECT_EQ(simulate("bbbb").exit_code, 0);
  auto line = lines().front();
  EXPECT_EQ(line["commit"], "aaaa");
  EXPECT_EQ(line["exact"], true);
  EXPECT_EQ(line["machine"], "");
  const std::int64_t time = line["step_time_ns"]["median"];
  line["step_time_ns"]["mean"] = line["step_time_ns"]["median"] = time + 1;
  write("h.jsonl", line.dump() + "\n");
  const Outcome faster = simulate("cccc");
  EXPECT_EQ(faster.exit_code, 1) << "also what is faster differs";
  EXPECT_EQ(faster.json()["verdict"], "improved");
  EXPECT_EQ(simulate("dddd").exit_code, 1) << "until it is accepted";
  EXPECT_EQ(simulate("eeee", {"--update"}).exit_code, 0);
  EXPECT_EQ(simulate("ffff").exit_code, 0);
  ASSERT_EQ(lines().size(), 5U);
  const auto shown = tandem({"history", "h.jsonl", "--json"}).json();
  EXPECT_EQ(shown["series"][0]["changes"].size(), 1U);
  EXPECT_EQ(shown["series"][0]["changes"][0]["commit"], "cccc");
}

// With golden reports the verdict is theirs, and the history keeps the time.
TEST_F(CheckHistory, KeepsTheTimesOfGoldenReports) {
  const std::vector<std::string> golden = {"check",  example("mesh.yaml"), "--baseline",
                                           "g.json", "--history",          "h.jsonl"};
  auto update = golden;
  update.emplace_back("--update");
  EXPECT_EQ(tandem(update).exit_code, 0);
  EXPECT_EQ(tandem(golden).exit_code, 0);
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_EQ(lines()[0]["accepted"], true);
  EXPECT_EQ(lines()[1]["step_time_ns"], lines()[0]["step_time_ns"]);
}

TEST_F(CheckHistory, AFullDiskLeavesItAsItWas) {
  write_history(20, 1000);
  const std::string before = read("h.jsonl");
  // Not a whole line more.
  const std::size_t blocks = before.size() / 512 + 1;
  const std::string command = "cd " + folder().string() + " && ulimit -f " + std::to_string(blocks) +
                              " && trap '' XFSZ && " TANDEM_BINARY " check small.yaml --history h.jsonl -q 2> err.txt";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 5) << read("err.txt");
  EXPECT_THAT(read("err.txt"), HasSubstr("cannot write h.jsonl: File too large"));
  EXPECT_EQ(read("h.jsonl"), before);
}

TEST_F(CheckHistory, AReadOnlyDiskIsNamedBeforeTheLaunch) {
  const std::string here = folder().string();
  const std::string mount = "unshare -m sh -c 'mount --bind " + here + " " + here + " && mount -o remount,ro,bind " +
                            here + " && cd " + here + " && ";
  if (std::system((mount + "true' > /dev/null 2>&1").c_str()) != 0) GTEST_SKIP() << "may not mount";
  char log[] = "/tmp/tandem-read-only-XXXXXX";
  close(mkstemp(log));
  for (const std::string options : {"--history h.jsonl", "--baseline b.json --update"}) {
    const int status = std::system((mount + TANDEM_BINARY " check small.yaml -q " + options + "' 2> " + log).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 5);
    std::ifstream in(log);
    const std::string error(std::istreambuf_iterator<char>(in), {});
    EXPECT_THAT(error, HasSubstr("Read-only file system")) << options;
  }
  std::filesystem::remove(log);
}

TEST_F(CheckHistory, InterruptedBetweenLaunchesItKeepsNothing) {
  write_small_scenario();
  std::string slow = read("small.yaml");
  write("small.yaml", slow.replace(slow.find("steps: 12"), 9, "steps: 500000"));
  const Outcome outcome = tandem_interrupted({"check", "small.yaml", "--history", "h.jsonl", "-q"}, 1.5);
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_EQ(outcome.err, "tandem: interrupted\n");
  EXPECT_FALSE(exists("h.jsonl"));
}

TEST_F(CheckHistory, IsShownWithItsChanges) {
  write_history(40, 1'000'000);
  std::string text;
  int number = 0;
  for (auto line : lines()) {
    if (++number > 25) {
      line["step_time_ns"]["mean"] = line["step_time_ns"]["median"] =
          line["step_time_ns"]["median"].get<std::int64_t>() * 11 / 10;
      line["commit"] = "fedcba9876543210";
    }
    text += line.dump() + "\n";
  }
  write("h.jsonl", text);
  const Outcome shown = tandem({"history", "h.jsonl"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("40 launches, 0 of them disturbed"));
  EXPECT_THAT(shown.out, HasSubstr("fedcba9876  "));
  EXPECT_THAT(shown.out, HasSubstr("+10.0 %"));
  const auto json = tandem({"history", "h.jsonl", "--json"}).json();
  EXPECT_EQ(json["series"][0]["changes"][0]["launch"], 25);
  EXPECT_TRUE(tandem({"history", "h.jsonl", "--json", "--margin", "20%"}).json()["series"][0]["changes"].empty());
  EXPECT_EQ(tandem({"history", "h.jsonl", "--scenario", "smal"}).exit_code, 3);
  EXPECT_THAT(tandem({"history", "h.jsonl", "--scenario", "smal"}).err, HasSubstr("did you mean 'small'?"));
  for (const char* margin : {"0%", "100%", "-3%", "3"}) {
    EXPECT_EQ(tandem({"history", "h.jsonl", "--margin", margin}).exit_code, 2) << margin;
  }
}

}  // namespace
}  // namespace tandem
