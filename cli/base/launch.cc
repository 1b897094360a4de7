#include "cli/base/launch.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "cli/base/interrupt.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(5);

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// A file without a name; a program's output may be larger than a pipe holds.
File scratch_file() {
  File file(std::tmpfile(), &std::fclose);
  if (!file) throw RunError(fmt::format("cannot make a temporary file: {}", std::strerror(errno)));
  return file;
}

std::string contents_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 65536> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), file)) > 0;) text.append(part.data(), n);
  return text;
}

// Ends the process, and those that it has started, when it goes out of scope.
class Process {
 public:
  Process(const std::vector<std::string>& command, std::FILE* output, std::FILE* error) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(output), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(error), STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    sigset_t ignored_here;
    sigemptyset(&ignored_here);
    for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&ignored_here, signal);
    posix_spawnattr_setsigdefault(&attributes, &ignored_here);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int failure = posix_spawn(&id_, words.front(), &actions, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) throw RunError(fmt::format("cannot start {}: {}", command.front(), std::strerror(failure)));
  }
  ~Process() {
    if (!has_ended_) end();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool has_ended() {
    siginfo_t ended{};
    const bool ends_now = !has_ended_ &&
                          waitid(P_PID, static_cast<id_t>(id_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                          ended.si_pid == id_;
    if (ends_now) end();
    return has_ended_;
  }
  std::string signal() const {
    if (!WIFSIGNALED(status_)) return "";
    return fmt::format("signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)));
  }
  int exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_); }

 private:
  // The group has the process's number, which is not given to another one before waitpid().
  void end() {
    kill(-id_, SIGKILL);
    waitpid(id_, &status_, 0);
    has_ended_ = true;
  }

  pid_t id_ = 0;
  int status_ = 0;
  bool has_ended_ = false;
};

}  // namespace

LaunchResult launch(const std::vector<std::string>& command, double timeout_s) {
  const OrderlyEnd orderly_end;  // of the process
  const File output = scratch_file();
  const File error = scratch_file();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  Process process(command, output.get(), error.get());
  while (!process.has_ended()) {
    check_for_interrupt();
    if (std::chrono::steady_clock::now() >= deadline) {
      throw RunError(fmt::format("{} has not ended after {:g} s", command.front(), timeout_s));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return {process.exit_code(), process.signal(), contents_of(output.get()), contents_of(error.get())};
}

}  // namespace tandem
