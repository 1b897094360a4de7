// The report of a run: a summary of its timing records, in the same form for every engine.
//
// Times are integer nanoseconds. A step takes as long as its slowest worker. All figures leave out the first
// `warmup_steps` steps.
//
// Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/timeline.h"
#include "reports/course/job_course.h"
#include "reports/errors/assumption.h"
#include "reports/errors/error_bands.h"
#include "reports/run/evaluations.h"
#include "reports/run/expectation.h"
#include "reports/run/memory_need.h"
#include "reports/run/model_work.h"
#include "reports/run/work_counts.h"
#include "reports/timeline/step_time.h"
#include "reports/timeline/waiting.h"

namespace tandem {

// Returns the version of this build of Tandem, "0.1.0".
std::string_view version();

// The parts of a step's time. Every instant of a step belongs to one of the first six: to the first of them, in this
// order, whose work runs on the device then, so that they add up to the step. Work is exposed while none of an earlier
// part runs beside it, and else hidden. A device is idle while nothing runs on it: it waits for the host or for other
// devices.
struct PerStep {
  Nanoseconds compute = 0;
  Nanoseconds update = 0;
  Nanoseconds exposed_input = 0;
  Nanoseconds exposed_communication = 0;
  Nanoseconds other = 0;
  Nanoseconds idle = 0;
  // All of it, hidden and exposed.
  Nanoseconds input = 0;
  Nanoseconds communication = 0;

  bool operator==(const PerStep&) const = default;
};

// A figure of PerStep and its name in documents.
struct StepPart {
  const char* name;
  Nanoseconds PerStep::*time;
};
std::span<const StepPart> step_parts();    // the six that add up, in their order
std::span<const StepPart> step_figures();  // these, then input and communication

// The work of devices that train no replica, such as those of a server or of a host that keeps the variables. Shows the
// busiest of them: its share of the measured time as parts of a step.
struct OtherDevices {
  std::string busiest;  // its name
  int count = 0;
  PerStep per_step;
};

// The collectives of a run with the same operation, bytes and devices. `time_ns` is the median over the calls, from the
// last rank's arrival to the last rank's end. algbw = bytes / time, and busbw is as in nccl-tests, both in bytes/s.
struct CollectiveSummary {
  std::string operation;
  std::int64_t bytes = 0;
  int devices = 0;
  int calls_per_step = 0;  // rounded
  Nanoseconds time_ns = 0;
  double algbw = 0;
  double busbw = 0;
  std::string algorithm{};         // what the engine chose, "ring LL128, 24 channels"; empty: it has no choice
  Nanoseconds waiting_ns = 0;      // of a rank for the last one, before that time; mean over ranks and calls
  std::vector<CallShare> ranks{};  // empty: nobody waits, or there are too many ranks to show
};

// Workers that one of them represented, whose figures are also theirs.
struct ReportedClass {
  std::string representative;  // "/job:worker/task:0"
  int workers = 1;             // itself included
  int devices = 0;             // of all of them
};

// The steps of one worker. The parts add up to the mean of its own steps.
struct WorkerSummary {
  StepTime step_time;
  PerStep per_step;
};

// Collectives of more ranks are not shown rank by rank.
inline constexpr std::size_t kMostRanksOfCalls = 64;

struct Summary {
  StepTime step_time;
  PerStep per_step;  // the mean over the devices that train; adds up to step_time.mean
  std::optional<OtherDevices> other_devices{};
  std::vector<CollectiveSummary> collectives;  // by operation, devices, bytes
  std::vector<WorkerSummary> workers;          // for each worker that has steps and is simulated, by index
  std::vector<RankWaiting> ranks{};            // of collectives
  std::optional<CriticalPath> critical_path{};
};

// The way in which the steps of several workers are counted. in_step: steps of the same number are one step, which
// lasts as long as that of the slowest worker. each_its_own: the steps of each worker count by themselves.
enum class Pace : std::uint8_t { in_step, each_its_own };

// Returns the rank for which the others wait in calls of a collective; null if that is not known, or they do not wait,
// or the calls are transfers between two ranks, where the receiver may be early on purpose.
const CallShare* awaited_rank(const CollectiveSummary& collective);

// What a summary has. of_steps: the times of the steps and their parts, but neither collectives nor waiting nor a
// critical path.
enum class Figures : std::uint8_t { all, of_steps };

// Summarizes a timeline with records of that level. Throws Error when no step remains after the warm-up.
Summary summarize(const Timeline& timeline, int warmup_steps, Pace pace = Pace::in_step,
                  RecordLevel records = RecordLevel::all, Figures figures = Figures::all);

// What this machine did while the steps were measured, in processor time.
struct MachineUse {
  int cores = 0;
  Nanoseconds time = 0;                   // elapsed time
  Nanoseconds own = 0;                    // what the run used
  Nanoseconds waited = 0;                 // while threads of the run were ready and had no processor
  Nanoseconds others = 0;                 // what other programs and the system used
  Nanoseconds stolen = 0;                 // what a virtual machine wanted and did not get
  std::int64_t involuntary_switches = 0;  // of threads of the run
  std::array<double, 2> frequency_hz{};   // of the processors, at the beginning and at the end; 0: unknown
  std::vector<GpuUse> gpus{};             // over the whole run

  // Returns the share of the time that the run asked for but did not get, because its threads waited while others ran,
  // or because it was stolen. Threads that only wait for one another, because they are more than the processors, lose
  // nothing to others.
  double lost() const;
  bool is_disturbed() const;
  static constexpr double kDisturbed = 0.05;

  bool operator==(const MachineUse&) const = default;
};

// Returns whether others worked on the GPU, or heat or the power supply held it back, for more than
// MachineUse::kDisturbed of the time.
bool is_disturbed(const GpuUse& use);

// The sizes at which a collective of a topology was measured. Times of other sizes are extrapolated.
struct CalibratedRange {
  std::string operation;
  int devices = 0;
  int nodes = 1;
  std::int64_t from_bytes = 0, to_bytes = 0;  // both included
  Nanoseconds from = 0, to = 0;               // the least and the greatest time

  bool operator==(const CalibratedRange&) const = default;
};

// The CPU devices of the machine that has the most of them for each of its cores. With more devices than cores, those
// that can go on wait for a core.
struct SharedCores {
  int devices = 0;  // of workers and parameter servers; all of them compute at the same time
  int cores = 0;

  bool are_short() const { return devices > cores; }
  bool operator==(const SharedCores&) const = default;
};

struct Report {
  std::string tandem_version{version()};  // the build that made the report
  std::string scenario;
  std::string scenario_hash;  // of the scenario's content, hexadecimal
  std::string engine;
  std::string topology;
  std::string topology_provenance;  // "measured", "vendor", "assumed"
  std::string machine{};            // on which it was measured: processors and GPUs; empty for simulations
  std::string system{};             // what else tells machines apart: memory, hypervisor; empty in earlier versions
  std::string strategy;
  std::string cross_device_ops;
  int replicas = 1;  // over all workers
  int workers = 1;   // those that train
  int devices = 0;   // those that train, on all workers; 0: the document is of an earlier version
  int parameter_servers = 0;
  bool asynchronous = false;  // each worker steps at its own pace, on its share of the batch
  int steps = 0;
  int warmup_steps = 0;
  RecordLevel records = RecordLevel::all;  // what the run recorded; see has_parts()
  bool deterministic = false;              // a simulation: times compare exactly
  double units_per_step = 0;               // examples in one global batch
  std::string throughput_unit = "examples/s";
  std::vector<ReportedClass> classes;  // simulations: the workers that ran, where others did not; by index
  Summary summary;
  std::optional<double> scaling_efficiency;  // throughput / (replicas * throughput of one replica), where measured
  std::vector<double> loss;                  // per step, where the workload has one
  std::map<std::string, double> metrics;     // "test_accuracy"
  std::map<std::string, std::string> settings;
  std::vector<CalibratedRange> calibrated{};  // predictions: the measured collectives on which they rest
  std::optional<MemoryNeed> memory{};         // of a device, where it is a prediction
  std::optional<ModelWork> work{};            // of a table of layers
  std::optional<JobPrice> price{};            // if the topology states what a machine costs
  std::optional<JobPower> power{};            // if the topology states what a machine takes
  std::optional<SharedCores> cores{};         // of CPU devices; empty in earlier versions
  std::optional<MachineUse> machine_use{};    // of a measured run, where the system reports it
  std::optional<WorkCounts> counts{};         // of a measured run that recorded all work; empty in earlier versions
  Nanoseconds op_time = 0;                    // likewise: see op_time.h; 0: not known
  std::vector<std::string> notes;
  std::optional<Expectation> expectation{};   // what the model expects of a measured run on its topology
  std::optional<ErrorBand> expected_error{};  // of a prediction; empty: the document is of an earlier version
  std::optional<ErrorBand> memory_error{};    // of `memory`, on GPUs
  std::optional<Evaluations> evaluations{};   // empty: none were asked for, or the job has a course
  std::vector<std::string> faults{};          // that were made to happen, or simulated, in these steps; for people
  std::optional<JobCourse> course{};          // of the whole job, where workers are lost
  std::vector<Assumption> assumptions{};      // that move a prediction most, where they were asked for

  // Returns whether the parts of a step are known, which takes records of all work. Else Summary::per_step, those of
  // workers and other devices, and the critical path say nothing.
  bool has_parts() const { return records == RecordLevel::all; }
  bool is_disturbed() const { return machine_use && machine_use->is_disturbed(); }

  // Returns the examples in the steps that are counted: in those of one worker where each has its own.
  double units_of_step() const { return asynchronous ? units_per_step / workers : units_per_step; }
  // Returns units_per_step / mean step time. For an asynchronous run, returns the sum over the workers of a worker's
  // share of the units / its mean step time. Returns 0 when no time passed.
  double throughput() const;
};

}  // namespace tandem
