#include <cstdlib>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class Manual : public CommandLine {};

TEST_F(Manual, CompletionKnowsCommandsOptionsAndTheirWords) {
  const std::string bash = tandem({"completion", "bash"}).out;
  EXPECT_THAT(bash, HasSubstr("--version run compare "));
  EXPECT_THAT(bash, HasSubstr("'run --values') COMPREPLY=($(compgen -W 'real none' "));
  EXPECT_THAT(bash, HasSubstr("--schedule-seed"));
  EXPECT_THAT(tandem({"completion", "zsh"}).out, testing::StartsWith("#compdef tandem\n"));
  EXPECT_THAT(tandem({"completion", "fish"}).out,
              HasSubstr("-n '__fish_seen_subcommand_from run' -l values -xa 'real none' -d 'Whether"));
  EXPECT_EQ(tandem({"completion", "tcsh"}).exit_code, 2);
}

// As bash itself does it.
TEST_F(Manual, BashCompletesWhatBegins) {
  ASSERT_EQ(tandem({"completion", "bash", "-o", "completion.sh"}).exit_code, 0);
  const auto completed = [this](const std::string& words, int place) {
    const std::string script = ". ./completion.sh; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(place) +
                               "; _tandem; echo \"${COMPREPLY[@]}\"";
    write("try.sh", script);
    EXPECT_EQ(std::system(("cd '" + folder().string() + "' && bash try.sh > listed").c_str()), 0);
    return read("listed");
  };
  EXPECT_EQ(completed("tandem comp", 1), "compare completion\n");
  EXPECT_EQ(completed("tandem run x.yaml --sched", 3), "--schedule-seed\n");
  EXPECT_EQ(completed("tandem run --values n", 3), "none\n");
  EXPECT_EQ(completed("tandem run compl", 2), "completion.sh\n") << "a file";
}

TEST_F(Manual, ThePageNamesEveryCommandAndOption) {
  const std::string page = tandem({"man"}).out;
  EXPECT_THAT(page, testing::StartsWith(".TH TANDEM 1 "));
  for (const char* part :
       {".SH TANDEM run\n", "\\-\\-cross\\-device\\-ops", "real|none", ".SH EXIT STATUS\nExit codes: 0"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

}  // namespace
}  // namespace tandem
