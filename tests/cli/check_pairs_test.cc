// `tandem check --against`: this program and others in turns.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class CheckPairs : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    write_small_scenario();
  }
  // A program of this name that does what the shell script says.
  void write_program(const std::string& name, const std::string& script) const {
    write(name, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder() / name, std::filesystem::perms::owner_all);
  }
  // One that repeats a report of the scenario with another step time.
  void write_program_with_steps_of(const std::string& name, std::int64_t step_ns) const {
    auto report = tandem({"run", "small.yaml", "--json", "-q"}).json();
    report["step_time_ns"]["mean"] = report["step_time_ns"]["median"] = step_ns;
    write(name + ".json", report.dump());
    write_program(name, "cat " + (folder() / (name + ".json")).string());
  }
  Outcome check(const std::string& program, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {"check", "small.yaml", "--against", program, "-q"};
    command.insert(command.end(), more.begin(), more.end());
    return tandem(command);
  }
};

TEST_F(CheckPairs, LaunchesThisProgramAndItselfInTurns) {
  const Outcome outcome = check(TANDEM_BINARY, {"--json", "--seed", "7"});
  EXPECT_THAT(outcome.exit_code, testing::AnyOf(0, 1, 6)) << outcome.err;
  const auto json = outcome.json();
  EXPECT_EQ(json["kind"], "paired_check");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["launches"].size(), 2 * json["pairs"].get<std::size_t>());
  EXPECT_LE(json["change"]["lower"], json["change"]["estimate"]);
  EXPECT_LE(json["change"]["estimate"], json["change"]["upper"]);
}

TEST_F(CheckPairs, FindsThatThisProgramIsSlowerOrFaster) {
  write_program_with_steps_of("fast", 1);
  const Outcome slower = check("./fast", {"--gate", "wall-clock"});
  EXPECT_EQ(slower.exit_code, 1) << slower.err;
  EXPECT_THAT(slower.out, HasSubstr(": regressed\n"));
  EXPECT_THAT(slower.out, HasSubstr("8 pairs of launches"));
  write_program_with_steps_of("slow", 3'600'000'000'000);
  const Outcome faster = check("./slow", {"--gate", "wall-clock"});
  EXPECT_EQ(faster.exit_code, 0) << faster.err;
  EXPECT_THAT(faster.out, HasSubstr(": improved\n"));
}

TEST_F(CheckPairs, NamesTheLaunchThatFails) {
  write_program("crash", "echo 'it broke' >&2; exit 7");
  const Outcome crash = check("./crash");
  EXPECT_EQ(crash.exit_code, 5);
  EXPECT_THAT(crash.err, HasSubstr("(./crash) ended with exit code 7: it broke"));
  write_program("hang", "exec sleep 600");
  const Outcome hang = check("./hang", {"--launch-timeout", "100ms"});
  EXPECT_EQ(hang.exit_code, 5);
  EXPECT_THAT(hang.err, HasSubstr("has not ended after 0.1 s"));
}

TEST_F(CheckPairs, NamesTheSignalThatEndsALaunch) {
  write_program("killed", "echo 'half a report'; kill -KILL $$");
  const Outcome killed = check("./killed");
  EXPECT_EQ(killed.exit_code, 5);
  EXPECT_THAT(killed.err, testing::MatchesRegex("tandem: launch [12] \\(./killed\\) was ended by signal 9 .Killed.\n"));
  EXPECT_EQ(killed.out, "");
  write_program("crash", "echo 'about to crash' >&2; kill -SEGV $$");
  const Outcome crash = check("./crash");
  EXPECT_EQ(crash.exit_code, 5);
  EXPECT_THAT(crash.err, HasSubstr("was ended by signal 11 (Segmentation fault): about to crash"));
}

TEST_F(CheckPairs, RefusesWhatCannotBeCompared) {
  EXPECT_EQ(check("nowhere").exit_code, 3);
  EXPECT_THAT(check("nowhere").err, HasSubstr("nowhere: no such program"));
  write_program("other", "echo hello");
  EXPECT_EQ(check("./other").exit_code, 3);
  EXPECT_THAT(check("./other").err, HasSubstr("(./other)"));
  const Outcome simulated = tandem({"check", example("resnet50-hgx-h100.yaml"), "--against", TANDEM_BINARY, "-q"});
  EXPECT_EQ(simulated.exit_code, 3);
  EXPECT_THAT(simulated.err, HasSubstr("use --baseline"));
}

TEST_F(CheckPairs, TakesAMarginThatIsAPercentageAndOneOtherSide) {
  EXPECT_EQ(tandem({"check", "small.yaml", "--against", "./fast", "--tries", "3"}).exit_code, 2);
  for (const char* margin : {"0%", "100%", "-3%", "3", "much"}) {
    EXPECT_EQ(check(TANDEM_BINARY, {"--margin", margin}).exit_code, 2) << margin;
  }
  EXPECT_THAT(check(TANDEM_BINARY, {"--margin", "3"}).err, HasSubstr("found '3'; write 3% or 0.03"));
  EXPECT_THAT(check(TANDEM_BINARY, {"--margin", "300"}).err, testing::Not(HasSubstr("write")));
  EXPECT_EQ(check(TANDEM_BINARY, {"--history", "h.jsonl"}).exit_code, 2);
  EXPECT_EQ(check(TANDEM_BINARY, {"--update"}).exit_code, 2);
  EXPECT_EQ(check(TANDEM_BINARY, {"--tolerance", "5%"}).exit_code, 2);
  EXPECT_EQ(tandem({"check", "small.yaml"}).exit_code, 2);
  EXPECT_EQ(tandem({"check", "small.yaml", "--baseline", "b.json", "--margin", "3%"}).exit_code, 2);
}

TEST_F(CheckPairs, RefusesOtherMachinesAndOlderPrograms) {
  auto report = tandem({"run", "small.yaml", "--json", "-q"}).json();
  report["machine"] = "another machine";
  write("moved.json", report.dump());
  write_program("moved", "cat " + (folder() / "moved.json").string());
  const Outcome moved = check("./moved");
  EXPECT_EQ(moved.exit_code, 3);
  EXPECT_THAT(moved.err, HasSubstr("the machine is '"));
  write_program("older", "echo \"tandem run: unknown option '--quiet'\" >&2; exit 2");
  const Outcome older = check("./older");
  EXPECT_EQ(older.exit_code, 5);
  EXPECT_THAT(older.err, HasSubstr("exit code 2: tandem run: unknown option '--quiet' (is it an older Tandem? It must "
                                   "take `run SCENARIO --json --quiet`)"));
  write("nothing", "#!/bin/sh\n");
  EXPECT_EQ(check("./nothing").exit_code, 5) << "may not be executed";
}

TEST_F(CheckPairs, SaysWhatTheReportOfAnOlderProgramLacks) {
  const auto now = tandem({"run", "small.yaml", "--json", "-q"}).json();
  const auto problem_with = [&](const nlohmann::json& report) {
    write("older.json", report.dump());
    write_program("older", "cat " + (folder() / "older.json").string());
    const Outcome outcome = check("./older");
    EXPECT_EQ(outcome.exit_code, 3);
    return outcome.err;
  };
  auto older = now;
  for (const char* field : {"per_step_ns", "step_time_ns"}) older.erase(field);
  const std::string lacks = problem_with(older);
  EXPECT_THAT(lacks, HasSubstr("(./older):1:1: step_time_ns: is missing\n"));
  EXPECT_THAT(lacks, HasSubstr("(./older):1:1: per_step_ns: is missing\n"));
  EXPECT_THAT(lacks, HasSubstr("reads; is it an older Tandem, or another program?\n"));
  older = now;
  older["schema_version"] = 0;
  EXPECT_THAT(problem_with(older), HasSubstr("schema_version: version 0 is not known; this Tandem reads version 1\n"));
  older = now;
  older.erase("machine");
  EXPECT_THAT(problem_with(older), HasSubstr("a Tandem that does not name its machine is older"));
}

// Returns whether a process runs that a test's program has written into a file. One that has ended may not have been
// collected by its parent yet.
bool runs(const std::string& pid) {
  EXPECT_FALSE(pid.empty());
  std::ifstream in("/proc/" + pid.substr(0, pid.find('\n')) + "/stat");
  std::string line;
  if (!std::getline(in, line)) return false;
  const char state = line.at(line.rfind(')') + 2);
  return state != 'Z' && state != 'X';
}

// A killed process needs a moment to end.
bool has_ended(const std::string& pid) {
  for (int look = 0; look < 1000 && runs(pid); ++look) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !runs(pid);
}

TEST_F(CheckPairs, LeavesNoLaunchBehindWhenInterrupted) {
  for (const std::string signal : {"INT", "TERM", "HUP"}) {
    write_program("hang", "sleep 600 & echo $! > child; echo $$ > pid; kill -s " + signal + " $PPID; wait");
    const Outcome outcome = check("./hang");
    EXPECT_EQ(outcome.exit_code, 130) << signal;
    EXPECT_EQ(outcome.err, "tandem: interrupted\n");
    EXPECT_TRUE(has_ended(read("pid")));
    EXPECT_TRUE(has_ended(read("child")));
  }
}

TEST_F(CheckPairs, LeavesNothingBehindOfALaunchThatTakesTooLongOrEnds) {
  write_program("hang", "sleep 600 & echo $! > child; wait");
  const Outcome outcome = check("./hang", {"--launch-timeout", "2s"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("has not ended after 2 s"));
  EXPECT_TRUE(has_ended(read("child")));
  write_program("leave", "sleep 600 & echo $! > child; exit 7");
  EXPECT_EQ(check("./leave").exit_code, 5);
  EXPECT_TRUE(has_ended(read("child")));
}

}  // namespace
}  // namespace tandem
