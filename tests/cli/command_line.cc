#include "tests/cli/command_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/caught_signals.h"

namespace tandem {
namespace {

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void redirect(const std::filesystem::path& file, int descriptor) {
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, 0600);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
}

// Waits until a process that was started handles signals, or has ended.
void wait_for_handler(pid_t process, int signal) {
  siginfo_t ended{};
  while (!catches(process, signal) &&
         (waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

pid_t start(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
            const std::string& error_file = "stderr.txt", const std::string& input_file = "",
            const std::function<void()>& before_exec = {}) {
  std::vector<char*> words = {const_cast<char*>("tandem")};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t process = fork();
  if (process != 0) return process;
  if (chdir(folder.c_str()) != 0) _exit(126);
  if (!input_file.empty() && dup2(open(input_file.c_str(), O_RDONLY), STDIN_FILENO) < 0) _exit(126);
  redirect("stdout.txt", STDOUT_FILENO);
  redirect(error_file, STDERR_FILENO);
  if (before_exec) before_exec();
  execv(TANDEM_BINARY, words.data());
  _exit(127);
}

Outcome finished(pid_t process, const std::filesystem::path& folder) {
  int status = 0;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = contents(folder / "stdout.txt");
  outcome.err = contents(folder / "stderr.txt");
  return outcome;
}

}  // namespace

void CommandLine::SetUp() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tandem-cli-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  // These tests may run on such systems themselves.
  for (const char* variable : {"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "GITHUB_SHA",
                               "CI_COMMIT_SHA", "SOURCE_DATE_EPOCH"}) {
    unsetenv(variable);
  }
}

void CommandLine::TearDown() {
  std::filesystem::remove_all(folder_);
}

Outcome CommandLine::tandem(const std::vector<std::string>& arguments) const {
  return finished(start(folder_, arguments), folder_);
}

Outcome CommandLine::tandem_reading(const std::string& text, const std::vector<std::string>& arguments) const {
  return finished(start(folder_, arguments, "stderr.txt", write("stdin.txt", text)), folder_);
}

Outcome CommandLine::tandem_with_pending(int signal, const std::vector<std::string>& arguments) const {
  const auto block_and_raise = [signal] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    raise(signal);
  };
  return finished(start(folder_, arguments, "stderr.txt", "", block_and_raise), folder_);
}

Outcome CommandLine::tandem_with_ignored(int signal, const std::vector<std::string>& arguments) const {
  const pid_t process = start(folder_, arguments, "stderr.txt", "", [signal] { std::signal(signal, SIG_IGN); });
  wait_for_handler(process, signal == SIGTERM ? SIGINT : SIGTERM);
  kill(process, signal);
  return finished(process, folder_);
}

Outcome CommandLine::tandem_interrupted(const std::vector<std::string>& arguments, double after_s, int signal) const {
#ifdef __SANITIZE_ADDRESS__
  constexpr double kSlower = 5;  // the program, from its start on
#else
  constexpr double kSlower = 1;
#endif
  const pid_t process = start(folder_, arguments);
  wait_for_handler(process, signal);
  std::this_thread::sleep_for(std::chrono::duration<double>(kSlower * after_s));
  kill(process, signal);
  return finished(process, folder_);
}

bool CommandLine::has_terminals() {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  const bool is_usable =
      terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0 && ptsname(terminal) != nullptr;
  if (terminal >= 0) close(terminal);
  return is_usable;
}

std::string CommandLine::shown_on_terminal(const std::vector<std::string>& arguments, const std::string& text) const {
  constexpr int kPatience_ms = 60'000;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  const pid_t process = start(folder_, arguments, ptsname(terminal));
  std::string shown;
  pollfd readable{.fd = terminal, .events = POLLIN, .revents = 0};
  while (shown.find(text) == std::string::npos && poll(&readable, 1, kPatience_ms) == 1) {
    std::array<char, 256> part{};
    const ssize_t count = ::read(terminal, part.data(), part.size());
    if (count <= 0) break;  // the command has ended
    shown.append(part.data(), static_cast<std::size_t>(count));
  }
  kill(process, SIGKILL);
  EXPECT_EQ(waitpid(process, nullptr, 0), process);
  close(terminal);
  return shown;
}

std::string CommandLine::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
  return name;
}

std::string CommandLine::read(const std::string& name) const {
  return contents(folder_ / name);
}

std::string CommandLine::write_small_scenario(const std::string& more) const {
  return write("small.yaml",
               "schema_version: 1\nworkload: {kind: mlp, batch: 32, hidden: [16]}\n"
               "devices: {type: cpu, per_worker: 2}\nsteps: 12\nwarmup_steps: 2\n" +
                   more);
}

std::string CommandLine::calibrated_machine() const {
  namespace fs = std::filesystem;
  const fs::path program = TANDEM_BINARY, kept = program.parent_path() / "calibrated_for_tests.yaml";
  const int lock = open((kept.string() + ".lock").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_GE(lock, 0);
  EXPECT_EQ(flock(lock, LOCK_EX), 0);  // other tests wait meanwhile
  if (!fs::exists(kept) || fs::last_write_time(kept) < fs::last_write_time(program)) {
    const Outcome outcome = tandem({"calibrate", "--quick", "--tries", "1", "--devices", "2", "-o", "machine.yaml"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, testing::IsEmpty());
    EXPECT_THAT(outcome.err, testing::HasSubstr("collectives measured"));
    if (outcome.exit_code == 0) {
      fs::copy_file(folder_ / "machine.yaml", kept.string() + ".new", fs::copy_options::overwrite_existing);
      fs::rename(kept.string() + ".new", kept);
    }
  } else {
    fs::copy_file(kept, folder_ / "machine.yaml", fs::copy_options::overwrite_existing);
  }
  close(lock);
  return "machine.yaml";
}

std::string CommandLine::example(const std::string& name) {
  return std::string(TANDEM_SOURCE_DIR) + "/scenarios/examples/" + name;
}

}  // namespace tandem
