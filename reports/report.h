// The report of one run: a summary of its timing records, in the same form for every engine.
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

// Where a step's time goes, per device. Each figure is the length of the union of the intervals of that category within
// the step, so that overlapping streams are not counted twice. `exposed_communication` is the part of the communication
// during which no compute, update or input work runs on the device; `idle` is the part of the step during which nothing
// runs on it.
struct PerStep {
  Nanoseconds compute = 0;
  Nanoseconds communication = 0;
  Nanoseconds exposed_communication = 0;
  Nanoseconds input = 0;
  Nanoseconds update = 0;
  Nanoseconds idle = 0;
};

// The collectives of a run with the same operation, bytes and devices. The time is the median over the calls of the
// time from the last rank's arrival to the last rank's end. algbw = bytes / time; busbw as in nccl-tests. Both in
// bytes/s.
struct CollectiveSummary {
  std::string operation;
  std::int64_t bytes = 0;
  int devices = 0;
  int calls_per_step = 0;  // rounded
  Nanoseconds time_ns = 0;
  double algbw = 0;
  double busbw = 0;
  std::string algorithm{};  // what the engine chose, "ring LL128, 24 channels"; empty: it has no choice
};

struct Summary {
  StepTime step_time;
  PerStep per_step;
  std::vector<CollectiveSummary> collectives;  // by operation, devices, bytes
  std::vector<StepTime> workers;               // for each worker that has steps, by index
};

// How the steps of several workers are counted. in_step: steps of the same number are one step, which lasts as long as
// the slowest worker's. each_its_own: the steps of each worker count by themselves.
enum class Pace : std::uint8_t { in_step, each_its_own };

// Throws Error when no step remains after the warm-up.
Summary summarize(const Timeline& timeline, int warmup_steps, Pace pace = Pace::in_step);

struct Report {
  std::string tandem_version{version()};  // the build that made the report
  std::string scenario;
  std::string scenario_hash;  // of the scenario's content, hexadecimal
  std::string engine;
  std::string topology;
  std::string topology_provenance;  // "measured", "vendor", "assumed"
  std::string strategy;
  std::string cross_device_ops;
  int replicas = 1;  // over all workers
  int workers = 1;   // those that train
  int parameter_servers = 0;
  bool asynchronous = false;  // each worker steps at its own pace, on its share of the batch
  int steps = 0;
  int warmup_steps = 0;
  bool deterministic = false;  // a simulation: times compare exactly
  double units_per_step = 0;   // examples in one global batch
  std::string throughput_unit = "examples/s";
  Summary summary;
  std::optional<double> scaling_efficiency;  // throughput / (replicas * throughput of one replica), where measured
  std::vector<double> loss;                  // per step, where the workload has one
  std::map<std::string, double> metrics;     // "test_accuracy"
  std::map<std::string, std::string> settings;
  std::vector<std::string> notes;

  // Returns units_per_step / median step time. For an asynchronous run: the sum over the workers of a worker's share of
  // the units / its median step time. 0 when no time passed.
  double throughput() const;
};

}  // namespace tandem
