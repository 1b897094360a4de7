#include "engine/cuda/device/gpu_watch.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/gpu.h"
#include "engine/cuda/kernels/launch_turn.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

constexpr std::chrono::microseconds kSpin{200}, kWatchPause{20};
constexpr std::chrono::milliseconds kCheckEvery{5};
// The time after a failure until collectives are aborted, and until a GPU counts as hanging.
constexpr double kGraceS = 1, kMostGraceS = 10;

// A sleep ends late by the thread's timer slack, 50 us unless it is set.
void sharpen_sleeps() {
  thread_local const int slack_ns = prctl(PR_SET_TIMERSLACK, 1UL);
  static_cast<void>(slack_ns);
}

void abort_all(const std::vector<ncclComm_t>& communicators) {
  ncclGroupStart();
  for (ncclComm_t communicator : communicators) ncclCommAbort(communicator);
  ncclGroupEnd();
}

}  // namespace

void PollPause::operator()() const {
  if (threads::Clock::now() - begin_ <= kSpin) return;
  sharpen_sleeps();
  std::this_thread::sleep_for(kWatchPause);
}

void abort_together(std::vector<ncclComm_t> communicators) {
  if (communicators.empty()) return;
  try {
    std::thread([communicators = std::move(communicators)] {
      try {
        const LaunchTurn turn;
        abort_all(communicators);
      } catch (const RunError&) {
        abort_all(communicators);  // the turn may be held by a launch that must be aborted
      }
    }).detach();
  } catch (const std::system_error&) {  // no thread could be started: the watchdog ends the run
  }
}

bool StopGrace::is_over() {
  constexpr double kStoppedS = 1;
  if (!since_stopped_ && is_stopped_ && is_stopped_()) since_stopped_.emplace();
  return since_stopped_ && since_stopped_->is_over(kStoppedS);
}

bool ends_within(cudaStream_t stream, double timeout_s) {
  const PollPause pause;
  while (query(stream) == cudaErrorNotReady) {
    if (pause.is_over(timeout_s)) return false;
    pause();
  }
  return true;
}

void GpuWatch::add(const std::weak_ptr<Watched>& watched) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(watched);
}

void GpuWatch::check_watched() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (const auto& each : watched_) {
    if (const auto watched = each.lock()) watched->check();
  }
}

void GpuWatch::abort_watched() {
  std::vector<ncclComm_t> communicators;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : watched_) {
      if (const auto watched = each.lock()) {
        for (ncclComm_t communicator : watched->give_up()) communicators.push_back(communicator);
      }
    }
  }
  abort_together(std::move(communicators));
}

bool GpuWatch::outlasts(cudaStream_t stream, bool has_failed) {
  if (!has_failed) return ends_within(stream, timeout_s_);
  if (ends_within(stream, std::min(kGraceS, timeout_s_))) return true;
  abort_watched();
  return ends_within(stream, std::min(kMostGraceS, timeout_s_));
}

GpuWatch::Outcome GpuWatch::wait(cudaEvent_t event, const threads::RunControl& control, std::string_view who,
                                 threads::Clock::time_point deadline) {
  const PollPause pause;
  auto next_check = threads::Clock::now() + kCheckEvery;
  for (;;) {
    const cudaError_t state = query(event);
    if (state == cudaSuccess) return Outcome::complete;
    if (state != cudaErrorNotReady) check(state, "cudaEventQuery", who);
    if (control.is_stopped()) return Outcome::stopped;
    const auto now = threads::Clock::now();
    if (now >= deadline) return Outcome::late;
    if (pause.is_over(timeout_s_)) {
      throw RunError(
          fmt::format("{}: the GPU has not reached a point in {} s, the watchdog's timeout", who, timeout_s_));
    }
    if (now >= next_check) {
      check_watched();
      next_check = now + kCheckEvery;
    }
    pause();
  }
}

}  // namespace tandem::cuda
