// What a calibration issues: every measured thing carries a label, by which its records are found again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace tandem {

struct CalibrationPlan {
  std::vector<std::int64_t> gemm_sides;        // the grid of m, n and k
  std::vector<std::int64_t> memory_bytes;      // of element-wise ops, read plus written
  std::vector<std::int64_t> copy_bytes;        // of copies between devices
  std::vector<std::int64_t> collective_bytes;  // of all_reduce buffers
  int repetitions = 0;                         // at least, of everything
  double gemm_budget_s = 0;                    // per shape, over all rounds

  std::vector<std::array<std::int64_t, 3>> gemm_shapes() const;  // {m, n, k}

  static CalibrationPlan quick();
  static CalibrationPlan full();
};

// The operations of a Communicator that are measured.
std::vector<std::string_view> calibrated_collectives();

std::string gemm_label(std::int64_t m, std::int64_t n, std::int64_t k);
std::string memory_label(std::int64_t bytes);
inline constexpr std::string_view kTinyOpLabel = "tiny";
inline constexpr std::string_view kSynchronizeLabel = "synchronize";

// What only the issuing side can see, in seconds.
struct HostSamples {
  std::vector<double> launch_s;                    // one op issued
  std::vector<Nanoseconds> synchronize_return_ns;  // clock when synchronize() returned, one per kSynchronizeLabel op
};

// Issues the whole plan on all devices of `worker` at once. `stage` is told what begins.
void run_calibration(Worker& worker, const CalibrationPlan& plan, HostSamples& host,
                     const std::function<void(std::string_view stage)>& stage);

}  // namespace tandem
