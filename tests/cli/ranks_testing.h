// Commands on several ranks, as a launcher starts them.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"

namespace tandem {

class CommandOnRanks : public CommandLine {
 protected:
  void TearDown() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"})
      unsetenv(name);
    CommandLine::TearDown();
  }

  static void be_rank(int rank, int count) {
    setenv("OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str(), 1);
    setenv("OMPI_COMM_WORLD_SIZE", std::to_string(count).c_str(), 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank).c_str(), 1);
  }
  // One of the ranks, while the others do not run.
  Outcome ranked(int rank, int count, const std::vector<std::string>& arguments) const {
    be_rank(rank, count);
    return tandem(arguments);
  }
  // All ranks at the same time, without a launcher. Returns their outcomes by rank.
  std::vector<Outcome> together(int count, const std::string& arguments) const {
    std::string script = fmt::format("cd {}\n", folder().string());
    for (int rank = 0; rank < count; ++rank) {
      script +=
          fmt::format("(OMPI_COMM_WORLD_RANK={0} OMPI_COMM_WORLD_SIZE={1} OMPI_COMM_WORLD_LOCAL_RANK={0} " TANDEM_BINARY
                      " {2} >stdout.{0} 2>stderr.{0} </dev/null; echo $? >code.{0}) &\n",
                      rank, count, arguments);
    }
    write("ranks.sh", script + "wait\n");
    std::vector<Outcome> outcomes;
    if (std::system(fmt::format("sh {}/ranks.sh", folder().string()).c_str()) != 0) return outcomes;
    for (int rank = 0; rank < count; ++rank) {
      const auto file = [rank](const char* name) { return fmt::format("{}.{}", name, rank); };
      outcomes.push_back({std::stoi(read(file("code"))), read(file("stdout")), read(file("stderr"))});
    }
    return outcomes;
  }
  // Runs the command on so many ranks of a launcher, and ends it after so many seconds. Exit code 77: this machine
  // launches no ranks.
  Outcome launched(int ranks, const std::string& arguments, double at_most_s = 600) const {
    const std::string command =
        fmt::format("cd {} && timeout --signal=TERM {} " TANDEM_SOURCE_DIR
                    "/tests/mpi/on_ranks.sh mpirun -n {} " TANDEM_BINARY " {} >stdout.txt 2>stderr.txt </dev/null",
                    folder().string(), at_most_s, ranks, arguments);
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("stdout.txt"), read("stderr.txt")};
  }

  int lines_of(const std::string& name) const {
    const std::string text = read(name);
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
};

}  // namespace tandem
