// What goes wrong in a job, and how it goes on: the `faults:` and `recovery:` of a scenario. docs/faults.md describes
// every key.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/faults/faults.h"

namespace tandem {

// What a fault happens to.
struct FaultTarget {
  // one: the worker `task` of `job`. any: one of the workers that train, drawn each time. each: each of them, on its
  // own.
  enum class Which : std::uint8_t { one, any, each };
  Which which = Which::one;
  std::string job = "worker";  // or "ps"
  int task = 0;
  std::optional<int> device{};     // of the worker: its place among the compute devices
  std::vector<LinkIndex> links{};  // instead of a worker, where not empty
  std::string text{};              // "worker:3/GPU:5", "w0.nic1"
};

// Something that happens again and again: as many seconds pass between two beginnings in the mean, exponentially
// distributed.
struct Recurrence {
  double mean_s = 0;
  double duration_s = 0;  // of each
  std::uint64_t seed = 1;
};

struct SlowFault {
  FaultTarget target{};
  double factor = 1;
  FaultPeriod when{};  // if it does not recur
  std::optional<Recurrence> again{};
};

struct FailFault {
  FaultTarget target{};
  std::optional<double> at_s{};  // one of these three
  std::optional<int> step{};
  std::optional<double> mttf_s{};
  std::uint64_t seed = 1;
  // When it can be used again; infinite: never; empty: not stated.
  std::optional<double> back_after_s{};
};

// A machine that comes or goes, as in a recorded trace.
struct TraceEvent {
  double date_s = 0;
  bool comes = false;
  std::string node{};
};

enum class RecoveryPolicy : std::uint8_t { end, restart_all, wait, continue_, elastic, spare };
const char* name_of(RecoveryPolicy policy);

struct CheckpointSettings {
  std::optional<std::int64_t> every_steps{};  // one of these two, or nothing is saved
  std::optional<double> every_s{};
  std::optional<double> time_s{};  // empty: not stated
  bool overlapped = false;         // training goes on while it is written
  std::optional<double> load_s{};  // empty: not stated
  std::string directory{};         // of a real run's checkpoints; empty: it saves none

  bool saves() const { return every_steps || every_s; }
};

struct RecoverySettings {
  std::optional<RecoveryPolicy> policy{};            // empty: TensorFlow's for the strategy
  int spares = 0;                                    // machines, with policy `spare`
  std::optional<double> detection_s{}, restart_s{};  // empty: not stated
  CheckpointSettings checkpoint{};
};

struct FaultSettings {
  std::vector<SlowFault> slow{};
  std::vector<Jitter> jitter{};
  std::vector<FailFault> fail{};
  std::vector<TraceEvent> trace{};  // in the order of dates
  RecoverySettings recovery{};

  bool loses_workers() const { return !fail.empty() || !trace.empty(); }
};

}  // namespace tandem
