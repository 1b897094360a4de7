// What people and CI read of one run: the summary of its timing records, the same for every engine.
//
// Times are integer nanoseconds. A step takes as long as its slowest worker. "Per step" figures are the median over
// the measured steps of the mean over the devices that have such work; work belongs to the step that issued it.
// The first `warmup_steps` steps are left out of every figure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

// The version of this build of Tandem, "0.1.0".
std::string_view version();

struct StepTime {
  Nanoseconds median = 0;
  Nanoseconds min = 0;
  Nanoseconds p95 = 0;  // nearest rank
  Nanoseconds median_absolute_deviation = 0;
  int samples = 0;
};

// Where a step's time goes, per device. Each is the length of the union of the intervals of that category within
// the step, so overlapping streams are not counted twice. `exposed_communication` is the part of the
// communication during which no compute, update or input work runs on the device; `idle` the part of the step during
// which nothing at all runs on it.
struct PerStep {
  Nanoseconds compute = 0;
  Nanoseconds communication = 0;
  Nanoseconds exposed_communication = 0;
  Nanoseconds input = 0;
  Nanoseconds update = 0;
  Nanoseconds idle = 0;
};

// One kind of collective: equal operation, bytes and ranks. Time: from the last rank's arrival to the last rank's
// end, median over the calls. algbw = bytes / time; busbw as in nccl-tests. Bandwidths in bytes/s.
struct CollectiveSummary {
  std::string operation;
  std::int64_t bytes = 0;
  int devices = 0;
  int calls_per_step = 0;  // rounded
  Nanoseconds time_ns = 0;
  double algbw = 0;
  double busbw = 0;
};

struct Summary {
  StepTime step_time;
  PerStep per_step;
  std::vector<CollectiveSummary> collectives;  // by operation, devices, bytes
  std::vector<StepTime> workers;               // of each worker that has steps, by index
};

// Whether the workers' steps of one number are one step, as long as the slowest worker's, or each is a step by itself.
enum class Pace : std::uint8_t { in_step, each_its_own };

// Throws Error when no step remains after the warm-up.
Summary summarize(const Timeline& timeline, int warmup_steps, Pace pace = Pace::in_step);

struct Report {
  std::string tandem_version{version()};  // of the build that made it
  std::string scenario;
  std::string scenario_hash;  // of the scenario's content, hexadecimal
  std::string engine;
  std::string topology;
  std::string topology_provenance;  // "measured", "vendor", "assumed"
  std::string strategy;
  std::string cross_device_ops;
  int replicas = 1;  // of all workers
  int workers = 1;   // that train
  int parameter_servers = 0;
  bool asynchronous = false;  // each worker steps at a pace of its own, on its share of the batch
  int steps = 0;
  int warmup_steps = 0;
  bool deterministic = false;  // simulated: times compare exactly
  double units_per_step = 0;   // examples in one global batch
  std::string throughput_unit = "examples/s";
  Summary summary;
  std::optional<double> scaling_efficiency;  // throughput / (replicas * throughput of one replica), where measured
  std::vector<double> loss;                  // per step, where the workload has one
  std::map<std::string, double> metrics;     // "test_accuracy"
  std::map<std::string, std::string> settings;
  std::vector<std::string> notes;

  // units_per_step / median step time; asynchronous: each worker's share / its median step time, added up. 0 where no
  // time passed.
  double throughput() const;
};

}  // namespace tandem
