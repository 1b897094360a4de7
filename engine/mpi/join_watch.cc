#include "engine/mpi/join_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/mpi/transport/transport.h"
#include "topologies/base/error.h"

namespace tandem::mpi {
namespace {

// The process can only exit: MPI, which could abort the job, has not begun. The launcher then ends the other ranks.
[[noreturn]] void give_up(const std::string& reason, int exit_code) {
  std::fputs(fmt::format("tandem: {}; the job ends\n", reason).c_str(), stderr);
  _exit(exit_code);
}

}  // namespace

double join_timeout_s() {
  constexpr double kUsual = 120, kMost = 1e6;
  const char* text = std::getenv("TANDEM_MPI_JOIN_S");
  if (text == nullptr) return kUsual;
  char* end = nullptr;
  const double timeout = std::strtod(text, &end);
  if (end != text && *end == '\0' && timeout > 0 && timeout <= kMost) return timeout;
  throw Error(fmt::format("TANDEM_MPI_JOIN_S is '{}', must be a number of seconds greater than 0", text));
}

JoinWatch::JoinWatch(Rank rank) : thread_([this, rank, timeout = join_timeout_s()] { watch(rank, timeout); }) {}

JoinWatch::~JoinWatch() {
  {
    const std::lock_guard lock(mutex_);
    has_joined_ = true;
  }
  joined_.notify_all();
  thread_.join();
}

void JoinWatch::watch(Rank rank, double timeout_s) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  std::unique_lock lock(mutex_);
  while (!joined_.wait_for(lock, kBetweenLooks, [this] { return has_joined_; })) {
    if (const int signal = signal_to_job(); signal != 0) {
      give_up(fmt::format("rank {} on {} was interrupted (SIG{}) before all {} ranks of the launch had begun",
                          rank.index, host_name(), sigabbrev_np(signal), rank.count),
              kInterrupted);
    }
    if (std::chrono::steady_clock::now() < end) continue;
    give_up(fmt::format("rank {} on {} has waited {:g} s for all {} ranks of the launch to begin", rank.index,
                        host_name(), timeout_s, rank.count),
            kRunFailed);
  }
}

}  // namespace tandem::mpi
