#include "tests/kills/victim.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "tests/caught_signals.h"

namespace tandem::kills {
namespace {

constexpr auto kTick = std::chrono::microseconds(500);
constexpr double kPatience_s = 60;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void redirect(const std::filesystem::path& file, int descriptor) {
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
}

}  // namespace

Victim::Victim(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
               const std::string& name) {
  std::vector<char*> words = {const_cast<char*>("tandem")};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  std::filesystem::remove(folder /
                          (name + ".out"));  // of an earlier one; this one may be killed before it opens its own
  began_s_ = now_s();
  id_ = fork();
  if (id_ != 0) {
    setpgid(id_, id_);
    return;
  }
  setpgid(0, 0);
  if (chdir(folder.c_str()) != 0) _exit(126);
  redirect(name + ".out", STDOUT_FILENO);
  redirect(name + ".err", STDERR_FILENO);
  execv(TANDEM_BINARY, words.data());
  _exit(127);
}

Victim::~Victim() {
  if (!is_collected_) {
    kill(-id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
}

bool Victim::has_ended(int& status) const {
  return waitpid(id_, &status, WNOHANG) == id_;
}

// Children whose parent was killed are of the group until they end.
void Victim::wait_for_children() const {
  const double begin_s = now_s();
  while (kill(-id_, 0) == 0 && now_s() - begin_s < kPatience_s) std::this_thread::sleep_for(kTick);
  EXPECT_NE(kill(-id_, 0), 0) << "a child is left";
}

Death Victim::end(int signal, double after_s) {
  Death death;
  int status = 0;
  double sent_s = began_s_;
  while (!is_collected_) {
    is_collected_ = has_ended(status);
    if (is_collected_ || now_s() - sent_s > kPatience_s) break;
    if (signal != 0 && !death.was_sent && now_s() - began_s_ >= after_s) {
      death.had_handler = catches(id_, signal);
      kill(id_, signal);
      death.was_sent = true;
      sent_s = now_s();
    }
    std::this_thread::sleep_for(kTick);
  }
  EXPECT_TRUE(is_collected_) << "has not ended";
  wait_for_children();
  death.seconds = now_s() - sent_s;
  death.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return death;
}

}  // namespace tandem::kills
