// Signals at the start of a command, whatever it is. What they do during its work is tested with each command.
#include "tests/cli/command_line.h"

namespace tandem {
namespace {

class Signals : public CommandLine {
 protected:
  // A command of each kind: such as runs, forks, reads or only prints.
  std::vector<std::vector<std::string>> commands() const {
    const std::string small = write_small_scenario();
    write("swept.yaml", read(small) + "sweep: {values: {workload.batch: [16, 32]}}\n");
    return {{"run", small},
            {"sweep", "swept.yaml", "--no-results"},
            {"check", small, "--history", "h.jsonl", "-q"},
            {"compare", small},
            {"collectives", "-g", "2", "-b", "1K", "-e", "1K"},
            {"topology", "check", "dgx-a100"},
            {"schema"},
            {"--version"},
            {}};
  }
};

TEST_F(Signals, ThatCameBeforeTheCommandEndItWith130) {
  for (const auto& command : commands()) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      const Outcome outcome = tandem_with_pending(signal, command);
      EXPECT_EQ(outcome.exit_code, 130) << testing::PrintToString(command) << ", signal " << signal;
      EXPECT_EQ(outcome.out, "");
      EXPECT_EQ(outcome.err, "tandem: interrupted\n");
    }
  }
}

TEST_F(Signals, ThatAreIgnoredStaySo) {
  const std::string small = write_small_scenario();
  write("swept.yaml", read(small) + "sweep: {values: {workload.batch: [16, 32]}}\n");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Outcome run = tandem_with_ignored(signal, {"run", small});
    EXPECT_EQ(run.exit_code, 0) << signal << ": " << run.err;
    const Outcome sweep = tandem_with_ignored(signal, {"sweep", "swept.yaml", "--no-results"});
    EXPECT_EQ(sweep.exit_code, 0) << signal << ": " << sweep.err;
  }
}

}  // namespace
}  // namespace tandem
