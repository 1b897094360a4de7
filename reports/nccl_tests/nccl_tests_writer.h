// Writes the times of a collective as nccl-tests prints them: with the same lines, columns and units as its text, and
// the same keys as its JSON (-J). Additions come after a '|' in the text, and as further keys in JSON.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/errors/error_bands.h"
#include "reports/nccl_tests/collective_table.h"

namespace tandem {

struct RankDevice {
  std::string host{};  // "worker0"
  int index = 0;       // among the devices of the host
  std::string name{};  // "/job:worker/replica:0/task:0/device:GPU:1"
};

// How far times of these sizes have been from predictions.
struct SizesError {
  std::string sizes{};  // "<= 32 KiB"
  ErrorBand band{};
};

// A figure of the machine that may be another, and what that would change.
struct CollectiveAssumption {
  std::string figure{};      // "hop_latency of network efa"
  std::string value{};       // that of the prediction, "30 us"
  std::string source{};      // on what it rests; may be empty
  std::string from{}, to{};  // what it may be

  // With the value, and with the ends of its range.
  struct Times {
    std::int64_t bytes = 0;
    double us = 0, from_us = 0, to_us = 0;

    double effect() const { return us > 0 ? std::max(std::abs(from_us - us), std::abs(to_us - us)) / us : 0; }
  };
  std::vector<Times> times{};  // of some or all sizes
};

// The run that made a table.
struct CollectiveRun {
  std::string engine{};
  std::string topology{};
  std::int64_t least_bytes = 0;
  std::int64_t most_bytes = 0;
  std::int64_t step_bytes = 0;  // used where step_factor is 1 or less
  double step_factor = 1;
  int warmup = 0;
  int iterations = 0;
  bool checks_values = false;
  int devices_per_worker = 1;
  bool one_process_a_device = false;
  std::vector<RankDevice> devices{};  // of rank 0, 1, ...
  std::string device_model{};         // "NVIDIA H100 SXM5"
  std::map<std::string, std::string> settings{};
  std::vector<std::string> notes{};
  std::vector<SizesError> expected_errors{};  // of predictions
  std::vector<CollectiveAssumption> assumptions{};
};

// The times of another table of the same collective, published or of an earlier run.
struct Against {
  std::string file{};
  std::map<std::int64_t, double> time_us{};  // by bytes

  explicit Against(const CollectiveTable& table);
};

std::string nccl_tests_text(const CollectiveRun& run, const CollectiveTable& table,
                            const std::optional<Against>& against = {});
nlohmann::ordered_json nccl_tests_json(const CollectiveRun& run, const CollectiveTable& table,
                                       const std::optional<Against>& against = {});

}  // namespace tandem
