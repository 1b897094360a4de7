// Programs under mpirun: the fixture that launches ranks, notes their processes and looks for what is left of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace tandem {

inline const std::string kDigits = TANDEM_SOURCE_DIR "/scenarios/examples/digits-multi-worker.yaml";

struct Ended {
  int exit_code = -1;
  std::string out, err;
  double seconds = 0;
};

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class MpiCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-mpi-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    if (shell("exec " TANDEM_ON_RANKS " " TANDEM_MPIEXEC " " TANDEM_MPIEXEC_NUMBER " 1 true").exit_code == 77) {
      GTEST_SKIP() << read("stdout.txt");
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Ended shell(const std::string& command) {
    const auto start = std::chrono::steady_clock::now();
    const std::string all = "cd " + folder_.string() + " && (" + command + ") >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(all.c_str());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("stdout.txt"), read("stderr.txt"),
            taken.count()};
  }
  Ended tandem(const std::string& arguments) { return shell("exec " TANDEM_BINARY " " + arguments); }
  // The command of every rank is `wrapped`, in which $TANDEM is the program; each first notes its process.
  static std::string ranks(int count, const std::string& wrapped) {
    return "exec " TANDEM_ON_RANKS " " TANDEM_MPIEXEC " " TANDEM_MPIEXEC_NUMBER " " + std::to_string(count) +
           " sh -c 'echo $$ >> processes; RANK=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; TANDEM=" TANDEM_BINARY "; " +
           wrapped + "'";
  }
  Ended on_ranks(int count, const std::string& arguments) { return shell(ranks(count, "exec $TANDEM " + arguments)); }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Writes a copy of a program or library that has other bytes in one place.
  void write_patched(const std::string& from, const std::string& to, const std::string& before,
                     const std::string& after) const {
    std::ifstream in(from, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const std::size_t at = bytes.find(before);
    ASSERT_NE(at, std::string::npos);
    for (; bytes.find(before) != std::string::npos;) bytes.replace(bytes.find(before), before.size(), after);
    std::filesystem::create_directories((folder_ / to).parent_path());
    std::ofstream(folder_ / to, std::ios::binary) << bytes;
    std::filesystem::permissions(folder_ / to, std::filesystem::perms::owner_all);
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  // None of the processes that ranks() has noted is there after a moment.
  void expect_no_orphan(int count) const {
    std::istringstream ids(read("processes"));
    int noted = 0;
    for (pid_t id = 0; ids >> id; ++noted) {
      for (int i = 0; i < 50 && kill(id, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_NE(kill(id, 0), 0) << "process " << id << " is still there";
    }
    EXPECT_EQ(noted, count);
  }
  static std::string long_run(const std::string& scenario = kDigits) {
    return "run " + scenario + " --engine mpi --steps 1000000 -q --json -o report.json";
  }
  // Runs for long, with a rank to which something happens: `what` precedes the program in its shell.
  Ended long_run_in_which(int count, int rank, const std::string& what, const std::string& scenario = kDigits,
                          const std::string& before = "") {
    std::filesystem::remove(folder_ / "processes");
    return shell((before.empty() ? "" : "export " + before + "; ") +
                 ranks(count, "if [ $RANK = " + std::to_string(rank) + " ]; then " + what + "\nfi; exec $TANDEM " +
                                  long_run(scenario)));
  }
  // A job that mpirun ends because a rank was killed: in bounded time, with the rank's name, and nothing left.
  void expect_killed(const Ended& ended, int count, int rank) {
    EXPECT_NE(ended.exit_code, 0);
    EXPECT_LT(ended.seconds, 30);
    EXPECT_THAT(ended.err, testing::HasSubstr("rank " + std::to_string(rank)));
    EXPECT_FALSE(exists("report.json"));
    expect_no_orphan(count);
  }

  std::filesystem::path folder_;
};

}  // namespace tandem
