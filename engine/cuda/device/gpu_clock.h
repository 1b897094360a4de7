// Converts the clock of a GPU to the host's: when the GPU reached an event, in the host's time.
//
// CUDA tells the time between two events as a float in milliseconds, which is precise near an event whose time the host
// knows. There is such an event, an anchor, for every second. CUDA states a resolution of about 0.5 us; the clocks
// differ by at most half the time that the host took to issue an anchor and to see it.
//
// Threads: any. All streams of a GPU share one GpuClock, so that their records agree.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/cuda/device/gpu_events.h"
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
  // Compares the clocks again when the latest comparison is a second old. If the GPU does not answer promptly, takes
  // `done`, which the GPU has reached, as the second's anchor; null: takes none.
  void refresh(const std::shared_ptr<GpuEvent>& done);

  // Finished work, and what the host knows about its time.
  struct Work {
    const GpuEvent &start, &end;
    Nanoseconds issued_ns = 0, seen_ns = 0;  // it began after issued_ns and had ended by seen_ns
    bool follows_another = false;            // it may have been issued after `start`
  };
  struct Interval {
    Nanoseconds start_ns = 0, end_ns = 0;
  };
  // Returns when the work was executed. Throws RunError when CUDA does not know the times.
  Interval times_of(const Work& work);

  Nanoseconds error_ns() const;  // how far the clocks may be apart

 private:
  struct Anchor {
    std::shared_ptr<GpuEvent> event;
    Nanoseconds at_ns = 0, error_ns = 0;
  };
  std::optional<Anchor> try_anchor(double timeout_s);
  bool add_anchor(double timeout_s);
  Anchor& nearest(Nanoseconds at_ns);
  static Nanoseconds time_of(const GpuEvent& event, const Anchor& anchor);

  EventPool& events_;
  const cudaStream_t stream_;
  mutable std::mutex mutex_;                          // guards the rest
  std::vector<Anchor> anchors_;                       // by time
  Nanoseconds compared_at_ns_ = 0, tried_at_ns_ = 0;  // the host's time of the latest comparison and the latest attempt
};

}  // namespace tandem::cuda
