#include "engine/cuda/device/gpu_clock.h"

#include <algorithm>
#include <chrono>

#include "engine/cuda/device/cuda_error.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

constexpr Nanoseconds kSpan = 1'000'000'000, kPause = 10'000'000;
constexpr double kPromptS = 100e-6;  // an anchor that takes longer is less exact than the clock it would correct

}  // namespace

Nanoseconds host_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Spins, because the host notices an event the later, the more rarely it looks.
std::optional<GpuClock::Anchor> GpuClock::try_anchor(double timeout_s) {
  const Nanoseconds before = host_ns(), latest = before + static_cast<Nanoseconds>(timeout_s * 1e9);
  auto event = events_.record(stream_, Timing::measured);
  Nanoseconds after = before;
  for (cudaError_t state = cudaErrorNotReady; state != cudaSuccess;) {
    state = query(event->handle());
    after = host_ns();
    if (state == cudaErrorNotReady && after > latest) return std::nullopt;
    if (state != cudaErrorNotReady) check(state, "cudaEventQuery", "the clock");
  }
  const Nanoseconds half = (after - before) / 2;
  compared_at_ns_ = after;
  return Anchor{std::move(event), before + half, half};
}

// Takes the quickest of several, since the first one wakes the GPU up.
bool GpuClock::add_anchor(double timeout_s) {
  constexpr int kTries = 4;
  std::optional<Anchor> best;
  for (int i = 0; i < kTries; ++i) {
    std::optional<Anchor> anchor = try_anchor(timeout_s);
    if (!anchor) break;
    if (!best || anchor->error_ns < best->error_ns) best = std::move(anchor);
  }
  if (best) anchors_.push_back(std::move(*best));
  return best.has_value();
}

bool GpuClock::start(double timeout_s) {
  const std::lock_guard lock(mutex_);
  return add_anchor(timeout_s);
}

// A GPU that has failed keeps its old anchor: others report it.
void GpuClock::refresh(const std::shared_ptr<GpuEvent>& done) {
  const std::lock_guard lock(mutex_);
  const Nanoseconds now = host_ns();
  if (now - compared_at_ns_ < kSpan || now - tried_at_ns_ < kPause) return;
  tried_at_ns_ = now;
  try {
    const Anchor latest = anchors_.back();
    if (add_anchor(kPromptS) || !done || now - latest.at_ns < kSpan) return;
    const Nanoseconds at = time_of(*done, latest);
    if (at > latest.at_ns) anchors_.push_back({done, at, latest.error_ns});
  } catch (const RunError&) {
  }
}

GpuClock::Anchor& GpuClock::nearest(Nanoseconds at_ns) {
  const auto later = std::upper_bound(anchors_.begin(), anchors_.end(), at_ns,
                                      [](Nanoseconds time, const Anchor& anchor) { return time < anchor.at_ns; });
  return later == anchors_.begin() ? *later : *(later - 1);
}

Nanoseconds GpuClock::time_of(const GpuEvent& event, const Anchor& anchor) {
  float elapsed_ms = 0;
  check(cudaEventElapsedTime(&elapsed_ms, anchor.event->handle(), event.handle()), "cudaEventElapsedTime");
  return anchor.at_ns + static_cast<Nanoseconds>(static_cast<double>(elapsed_ms) * 1e6);
}

// Work starts after it was issued, and ends before it is seen to be done. If the clock says otherwise, the clock is
// corrected, so that durations stay as the GPU measured them. Of work that follows another, only its end tells.
GpuClock::Interval GpuClock::times_of(const Work& work) {
  const std::lock_guard lock(mutex_);
  Anchor& anchor = nearest(work.seen_ns);
  Nanoseconds start = time_of(work.start, anchor), end = time_of(work.end, anchor);
  const Nanoseconds too_early = work.issued_ns - (work.follows_another ? end : start);
  const Nanoseconds correction = std::min(std::max<Nanoseconds>(0, too_early), work.seen_ns - end);
  anchor.at_ns += correction;
  start = std::max(start + correction, work.issued_ns);
  return {start, std::max(end + correction, start)};
}

Nanoseconds GpuClock::error_ns() const {
  const std::lock_guard lock(mutex_);
  Nanoseconds most = 0;
  for (const Anchor& anchor : anchors_) most = std::max(most, anchor.error_ns);
  return most;
}

}  // namespace tandem::cuda
