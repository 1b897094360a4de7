// The clock of a GPU beside the host's: when the GPU reached an event, in the host's time.
//
// CUDA tells the time between two events, as a float in milliseconds: precise near an event whose time the host knows.
// So there is such an anchor for each second. CUDA states a resolution of about 0.5 us; how far the clocks are apart is
// at most what the host took to see an anchor.
//
// Threads: any. One for all streams of a GPU, so that their records have one clock.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "engine/cuda/gpu_events.h"
#include "engine/timeline.h"

namespace tandem::cuda {

// Nanoseconds of the host's steady clock.
Nanoseconds host_ns();

class GpuClock {
 public:
  // `stream` has no other work; it and `events` outlive the clock.
  GpuClock(EventPool& events, cudaStream_t stream) : events_(events), stream_(stream) {}

  // Sets the first anchor. Returns false when the GPU does not answer within the time.
  bool start(double timeout_s);
  // Compares the clocks again when the latest comparison is a second old. As long as the GPU does not answer promptly,
  // an anchor for each second is `done`, which the GPU has reached; null: none.
  void refresh(const std::shared_ptr<GpuEvent>& done);

  // Work that is done, and what the host knows of its time.
  struct Work {
    const GpuEvent &start, &end;
    Nanoseconds issued_ns = 0, seen_ns = 0;  // it began after the one and had ended before the other
    bool follows_another = false;            // it may have been issued after `start`
  };
  struct Interval {
    Nanoseconds start_ns = 0, end_ns = 0;
  };
  // Throws RunError when CUDA does not know the times.
  Interval times_of(const Work& work);

  Nanoseconds error_ns() const;  // how far the clocks may be apart

 private:
  struct Anchor {
    std::shared_ptr<GpuEvent> event;
    Nanoseconds at_ns = 0, error_ns = 0;
  };
  bool try_anchor(double timeout_s);
  Anchor& nearest(Nanoseconds at_ns);
  static Nanoseconds time_of(const GpuEvent& event, const Anchor& anchor);

  EventPool& events_;
  const cudaStream_t stream_;
  mutable std::mutex mutex_;
  std::vector<Anchor> anchors_;                       // by time
  Nanoseconds compared_at_ns_ = 0, tried_at_ns_ = 0;  // the host's time of the latest comparison, and attempt
};

}  // namespace tandem::cuda
