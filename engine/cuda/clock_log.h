// Samples the clocks of GPUs during a run, and what disturbs it, on its own thread: clocks drop as soon as a run ends.
//
// Threads: one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/cuda/nvml.h"

namespace tandem::cuda {

class ClockLog {
 public:
  // `gpus` are PCI bus ids. `nvml` may be null: then nothing is known.
  ClockLog(std::vector<std::string> gpus, std::shared_ptr<const Nvml> nvml,
           std::chrono::milliseconds every = std::chrono::milliseconds(500));
  ~ClockLog() { stop(); }
  ClockLog(const ClockLog&) = delete;
  ClockLog& operator=(const ClockLog&) = delete;

  // Ends the readings. Returns for each GPU "SM 1755 of 1980 MHz, memory 2619 of 2619 MHz (SM 1410 to 1980 MHz in 21
  // readings)", with medians; "" where nothing is known.
  std::vector<std::string> finish();
  // Returns, after finish(), what held GPUs back and who else used them. Omits GPUs about which nothing is known.
  std::vector<GpuUse> uses() const;

 private:
  void read_clocks();
  void stop();
  std::string text_of(std::size_t gpu) const;

  const std::vector<std::string> gpus_;
  const std::shared_ptr<const Nvml> nvml_;
  std::vector<std::vector<GpuState>> readings_;  // by GPU; the thread's until it has ended
  std::mutex mutex_;                             // guards is_over_
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace tandem::cuda
