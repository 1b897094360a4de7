// Names of files that a terminal, a log, a page or a CI system would obey: shown, and nothing else.
#include <cstdlib>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Sets a terminal's color, begins a line with a command of GitHub's, and turns the direction of text.
constexpr const char* kOddName = R"("a\e[31mb\n::error::c ##[group]\u009bd\u202ee|<f>&%")";
constexpr const char* kShownName = R"(a\x1b[31mb\n::error::c #\#[group]\u009bd\u202ee|<f>&%)";

// Matches a text of several lines that does nothing but show.
MATCHER(IsHarmless, "") {
  const std::string text = "\n" + arg;
  for (const char* harm : {"\033", "\n::", "\u009b", "\u202e", "##["}) {
    if (text.find(harm) != std::string::npos) return false;
  }
  return true;
}

class OddNames : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    write("odd.yaml", std::string("schema_version: 1\nname: ") + kOddName +
                          "\nworkload: {kind: mlp, batch: 64, hidden: [16]}\nstrategy: {name: mirrored}\n"
                          "engine: {name: sim}\ntopology: ./machine.yaml\ndevices: {type: gpu, per_worker: 2}\n"
                          "steps: 3\nwarmup_steps: 1\n");
    write("machine.yaml", std::string("schema_version: 1\nname: ") + kOddName + "\nbased_on: dgx1-v100\n");
  }
  void TearDown() override {
    unsetenv("GITHUB_ACTIONS");
    unsetenv("GITHUB_STEP_SUMMARY");
    CommandLine::TearDown();
  }
};

TEST_F(OddNames, AreShownInTextsAndPages) {
  const Outcome run = tandem({"run", "odd.yaml", "--html", "page.html"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(IsHarmless(), HasSubstr(std::string(kShownName) + ": 2 replicas")));
  EXPECT_THAT(read("page.html"), AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\u202e")), Not(HasSubstr("<f>"))));
  EXPECT_THAT(tandem({"topology", "show", "machine.yaml"}).out, IsHarmless());
  EXPECT_THAT(tandem({"collectives", "all_reduce", "--topology", "machine.yaml", "-b", "1K", "-e", "1K"}).out,
              IsHarmless());
}

TEST_F(OddNames, AreExactInDocuments) {
  const Outcome run = tandem({"run", "odd.yaml", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\u009b")), Not(HasSubstr("\u202e"))));
  EXPECT_EQ(run.json()["scenario"], "a\033[31mb\n::error::c ##[group]\u009bd\u202ee|<f>&%");
  write("report.json", run.out);
  EXPECT_THAT(tandem({"report", "report.json"}).out, IsHarmless());
  for (const char* format : {"yaml", "dot", "graphml", "simgrid"}) {
    const Outcome converted = tandem({"topology", "convert", "machine.yaml", "--format", format});
    EXPECT_EQ(converted.exit_code, 0) << converted.err;
    EXPECT_THAT(converted.out, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\u009b")), Not(HasSubstr("\u202e"))));
  }
}

TEST_F(OddNames, AreShownInWhatCiSystemsRead) {
  ASSERT_EQ(tandem({"check", "odd.yaml", "--baseline", "golden.json", "--update", "-q"}).exit_code, 0);
  auto golden = nlohmann::json::parse(read("golden.json"));
  golden["step_time_ns"]["mean"] = golden["step_time_ns"]["median"] =
      golden["step_time_ns"]["median"].get<std::int64_t>() / 2;
  write("golden.json", golden.dump());
  setenv("GITHUB_ACTIONS", "true", 1);
  setenv("GITHUB_STEP_SUMMARY", (folder() / "summary.md").c_str(), 1);
  const Outcome check = tandem({"check", "odd.yaml", "--baseline", "golden.json", "-q", "--junit", "junit.xml",
                                "--markdown", "table.md", "--csv", "times.csv"});
  EXPECT_EQ(check.exit_code, 1) << check.err;
  EXPECT_THAT(check.out, IsHarmless());
  EXPECT_THAT(check.err, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\n::error::c")), Not(HasSubstr("\u202e")),
                               HasSubstr("title=a\\x1b[31mb%0A%3A%3Aerror%3A%3Ac ")));
  for (const char* file : {"junit.xml", "table.md", "summary.md", "times.csv"}) {
    EXPECT_THAT(read(file), AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\u009b")), Not(HasSubstr("\u202e")))) << file;
  }
  EXPECT_THAT(read("junit.xml"), HasSubstr("name=\"a\\x1b[31mb&#10;::error::c ##[group]\\u009bd\\u202ee|&lt;f&gt;"));
  EXPECT_THAT(read("table.md"), HasSubstr("\\|&lt;f>&amp;%"));
}

TEST_F(OddNames, AreShownInErrors) {
  write("broken.yaml", std::string("schema_version: 1\n") + kOddName + ": 1\n");
  write("broken.json", "{\"kind\": \"\\u001b[31m\\n::error::x\"}");
  for (const auto& command : std::vector<std::vector<std::string>>{{"run", "broken.yaml"},
                                                                   {"topology", "check", "broken.yaml"},
                                                                   {"report", "broken.json"},
                                                                   {"run", "::error::no.yaml"},
                                                                   {"run", "no\033[31m.yaml"},
                                                                   {"topology", "show", "a\n::error::b"}}) {
    const Outcome outcome = tandem(command);
    EXPECT_EQ(outcome.exit_code, 3) << command.back();
    EXPECT_THAT(outcome.err, IsHarmless()) << command.back();
  }
}

}  // namespace
}  // namespace tandem
