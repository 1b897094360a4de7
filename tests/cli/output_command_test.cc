// Results that cannot be written: a reader that has gone, a full disk, a closed stream.
#include <sys/wait.h>

#include <cstdlib>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class CommandOutput : public CommandLine {
 protected:
  // Runs a line of the shell in which $T is the program.
  Outcome shell(const std::string& line) const {
    const std::string command = "cd " + folder().string() +
                                " && export T=" TANDEM_BINARY " && bash -c 'set -o pipefail; " + line +
                                "' >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), read("out.txt"), read("err.txt")};
  }
};

TEST_F(CommandOutput, AReaderThatHasGoneIsAnErrorAfterTheFilesAreWritten) {
  const Outcome outcome = shell("$T run " + example("mesh.yaml") + " -q --json --html page.html --trace t.json | true");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(outcome.err, "tandem: cannot write the standard output: Broken pipe\n");
  EXPECT_THAT(read("page.html"), testing::EndsWith("</html>\n"));
  EXPECT_EQ(nlohmann::json::parse(read("t.json"), nullptr, false).is_discarded(), false);
}

TEST_F(CommandOutput, AFullDiskEndsEveryCommandWithTheSameError) {
  const std::string scenario = example("mesh.yaml");
  write("gpt2.json",
        "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"n_embd\": 64, \"n_layer\": 2, "
        "\"n_head\": 4, \"n_positions\": 128, \"vocab_size\": 1000}");
  const std::vector<std::string> commands = {"run " + scenario + " -q",
                                             "--help",
                                             "--version",
                                             "man",
                                             "completion bash",
                                             "schema",
                                             "topology show hgx-h100",
                                             "topology convert hgx-h100",
                                             "topology check hgx-h100",
                                             "collectives --topology hgx-h100",
                                             "check " + scenario + " --baseline b.json --update -q",
                                             "sweep " + example("gpt-sweep.yaml") + " --dry-run",
                                             "import gpt2.json -q"};
  for (const std::string& command : commands) {
    const Outcome outcome = shell("$T " + command + " > /dev/full");
    EXPECT_EQ(outcome.exit_code, 5) << command << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("tandem: cannot write the standard output: No space left on device\n"));
  }
}

TEST_F(CommandOutput, NoFileTakesThePlaceOfAClosedStream) {
  const Outcome outcome = shell("$T check " + example("mesh.yaml") + " --history h.jsonl >&-");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("tandem: cannot write the standard output: Bad file descriptor\n"));
  EXPECT_EQ(nlohmann::json::parse(read("h.jsonl"))["kind"], "launch") << "one line, and nothing else";
}

}  // namespace
}  // namespace tandem
