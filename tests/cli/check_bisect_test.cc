// `git bisect run tandem check --bisect ...` over a real repository.
#include <cstdlib>
#include <fstream>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class CheckBisect : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    if (std::system("git --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
    std::ifstream in(example("resnet50-hgx-h100.yaml"));
    scenario_.assign(std::istreambuf_iterator<char>(in), {});
    ASSERT_THAT(scenario_, HasSubstr("batch: "));
  }
  // Runs a line of shell in the folder; returns what it prints.
  std::string shell(const std::string& line) const {
    const std::string command = "cd " + folder().string() + " && { " + line + "; } > shell.txt 2>&1";
    status_ = std::system(command.c_str());
    return read("shell.txt");
  }
  std::string git(const std::string& arguments) const {
    return shell("GIT_CONFIG_GLOBAL=/dev/null git -C repository -c user.name=a -c user.email=a@b " + arguments);
  }
  std::string commit(const std::string& message, const std::string& scenario) const {
    write("repository/gate.yaml", scenario);
    git("add gate.yaml");
    git("commit -q --allow-empty -m '" + message + "'");
    return git("rev-parse HEAD").substr(0, 40);
  }
  std::string with_batch(const std::string& batch) const {
    std::string text = scenario_;
    const std::size_t begin = text.find("batch: ") + 7;
    return text.replace(begin, text.find_first_of(",}\n", begin) - begin, batch);
  }

  std::string scenario_;
  mutable int status_ = 0;
};

TEST_F(CheckBisect, FindsTheCommitThatChangedTheTimes) {
  std::filesystem::create_directory(folder() / "repository");
  git("init -q .");
  const std::string good = commit("good", scenario_);
  EXPECT_EQ(tandem({"check", "repository/gate.yaml", "--baseline", "golden.json", "--update", "-q"}).exit_code, 0);
  commit("a comment", "# as before\n" + scenario_);
  commit("broken", "workload: [");
  commit("mended", "# mended\n" + scenario_);
  const std::string slower = commit("slower", with_batch("1024"));
  commit("another comment", "# slower\n" + with_batch("1024"));
  commit("a third comment", "# still slower\n" + with_batch("1024"));
  git("bisect start HEAD " + good);
  const std::string found = git("bisect run " TANDEM_BINARY " check --bisect gate.yaml --baseline ../golden.json -q");
  EXPECT_EQ(status_, 0) << found;
  EXPECT_THAT(found, HasSubstr(slower + " is the first bad commit"));
}

TEST_F(CheckBisect, Gives125ForWhatCannotBeJudged) {
  write("gate.yaml", scenario_);
  EXPECT_EQ(tandem({"check", "--bisect", "gate.yaml", "--baseline", "golden.json"}).exit_code, 125) << "no golden";
  EXPECT_EQ(tandem({"check", "--bisect", "gate.yaml", "--bazeline", "golden.json"}).exit_code, 125) << "a usage error";
  EXPECT_EQ(tandem({"check", "gate.yaml", "--baseline", "golden.json", "--update", "-q"}).exit_code, 0);
  EXPECT_EQ(tandem({"check", "--bisect", "gate.yaml", "--baseline", "golden.json"}).exit_code, 0);
  std::string renamed = scenario_;
  write("gate.yaml", renamed.replace(renamed.find("name: resnet50"), 14, "name: another"));
  const Outcome other = tandem({"check", "--bisect", "gate.yaml", "--baseline", "golden.json"});
  EXPECT_EQ(other.exit_code, 125) << other.out << other.err;
  EXPECT_EQ(tandem({"check", "--bisect", "nowhere.yaml", "--baseline", "golden.json"}).exit_code, 125);
}

TEST_F(CheckBisect, ARegressionOfOneScenarioIsBadWhateverCannotBeJudged) {
  std::filesystem::create_directory(folder() / "gate");
  for (const char* name : {"a", "b"}) write(std::string("gate/") + name + ".yaml", scenario_);
  ASSERT_EQ(tandem({"check", "gate", "--baseline", "golden", "--update", "-q"}).exit_code, 0);
  write("gate/a.yaml", with_batch("1024"));
  std::string renamed = scenario_;
  write("gate/b.yaml", renamed.replace(renamed.find("name: resnet50"), 14, "name: another"));
  EXPECT_EQ(tandem({"check", "--bisect", "gate", "--baseline", "golden", "-q"}).exit_code, 1);
  write("gate/a.yaml", scenario_);
  EXPECT_EQ(tandem({"check", "--bisect", "gate", "--baseline", "golden", "-q"}).exit_code, 125);
}

}  // namespace
}  // namespace tandem
