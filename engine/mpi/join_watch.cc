#include "engine/mpi/join_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "engine/mpi/transport.h"
#include "topologies/base/error.h"

namespace tandem::mpi {
namespace {

double timeout_s() {
  constexpr double kUsual = 120, kMost = 1e6;
  const char* text = std::getenv("TANDEM_MPI_JOIN_S");
  if (text == nullptr) return kUsual;
  char* end = nullptr;
  const double timeout = std::strtod(text, &end);
  if (end != text && *end == '\0' && timeout > 0 && timeout <= kMost) return timeout;
  throw Error(fmt::format("TANDEM_MPI_JOIN_S is '{}', must be a number of seconds greater than 0", text));
}

}  // namespace

JoinWatch::JoinWatch(Rank rank) : thread_([this, rank, timeout = timeout_s()] { watch(rank, timeout); }) {}

JoinWatch::~JoinWatch() {
  {
    const std::lock_guard lock(mutex_);
    has_joined_ = true;
  }
  joined_.notify_all();
  thread_.join();
}

// The process can only exit: MPI, which could abort the job, has not begun. The launcher then ends the other ranks.
void JoinWatch::watch(Rank rank, double timeout_s) {
  std::unique_lock lock(mutex_);
  if (joined_.wait_for(lock, std::chrono::duration<double>(timeout_s), [this] { return has_joined_; })) return;
  std::fputs(fmt::format("tandem: rank {} has waited {:g} s for all {} ranks of the launch to begin; the job ends\n",
                         rank.index, timeout_s, rank.count)
                 .c_str(),
             stderr);
  _exit(kRunFailed);
}

}  // namespace tandem::mpi
