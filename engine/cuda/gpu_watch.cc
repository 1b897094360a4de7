#include "engine/cuda/gpu_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "engine/cuda/cuda_error.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

// A wait spins first, because most are for a GPU that is nearly done. Later a free core is worth more than some
// microseconds.
constexpr std::chrono::microseconds kSpin{200}, kPause{20};
constexpr std::chrono::milliseconds kCheckEvery{5};
// The time after a failure until collectives are aborted, and until a GPU counts as hanging.
constexpr double kGraceS = 1, kMostGraceS = 10;

}  // namespace

bool ends_within(cudaStream_t stream, double timeout_s) {
  const auto begin = threads::Clock::now();
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    const auto waited = threads::Clock::now() - begin;
    if (waited > std::chrono::duration<double>(timeout_s)) return false;
    if (waited > kSpin) std::this_thread::sleep_for(kPause);
  }
  return true;
}

void GpuWatch::add(const std::weak_ptr<Watched>& watched) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(watched);
}

void GpuWatch::check_watched() {
  const std::lock_guard lock(mutex_);
  for (const auto& each : watched_) {
    if (const auto watched = each.lock()) watched->check();
  }
}

void GpuWatch::abort_watched() {
  const std::lock_guard lock(mutex_);
  for (const auto& each : watched_) {
    if (const auto watched = each.lock()) watched->abort();
  }
}

bool GpuWatch::outlasts(cudaStream_t stream, bool has_failed) {
  if (!has_failed) return ends_within(stream, timeout_s_);
  if (ends_within(stream, std::min(kGraceS, timeout_s_))) return true;
  abort_watched();
  return ends_within(stream, std::min(kMostGraceS, timeout_s_));
}

GpuWatch::Outcome GpuWatch::wait(cudaEvent_t event, const threads::RunControl& control, std::string_view who,
                                 threads::Clock::time_point deadline) {
  const auto begin = threads::Clock::now();
  auto next_check = begin + kCheckEvery;
  for (;;) {
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaSuccess) return Outcome::complete;
    if (state != cudaErrorNotReady) check(state, "cudaEventQuery", who);
    if (control.is_stopped()) return Outcome::stopped;
    const auto now = threads::Clock::now();
    if (now >= deadline) return Outcome::late;
    if (now - begin > std::chrono::duration<double>(timeout_s_)) {
      throw RunError(
          fmt::format("{}: the GPU has not reached a point in {} s, the watchdog's timeout", who, timeout_s_));
    }
    if (now >= next_check) {
      check_watched();
      next_check = now + kCheckEvery;
    }
    if (now - begin > kSpin) std::this_thread::sleep_for(kPause);
  }
}

}  // namespace tandem::cuda
