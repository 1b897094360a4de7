// What a run leaves behind: one record per timed interval, the same from every engine.
//
// Times are integer nanoseconds on the engine's clock (wall or simulated); only differences mean anything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/name.h"

namespace tandem {

using Nanoseconds = std::int64_t;

// The purpose of an interval, by which reports add up time.
enum class Category : std::uint8_t { compute, communication, update, input, other };
// op: device work. copy: data moved by a stream. collective: a communicator's call, one record a device.
// step: one training step of one worker, on no device.
enum class RecordKind : std::uint8_t { op, copy, collective, step };
std::string_view name_of(Category category);
std::string_view name_of(RecordKind kind);

// What a run records: everything, steps and collectives, or steps alone. A GPU spends time on every record of its work.
enum class RecordLevel : std::uint8_t { all, collectives, steps };
std::string_view name_of(RecordLevel level);
bool is_recorded(RecordKind kind, RecordLevel level);

inline constexpr int kNoStep = -1;
inline constexpr int kNoDevice = -1;  // the host of a worker

struct Record {
  RecordKind kind = RecordKind::op;
  Category category = Category::compute;
  Name name{};             // of the op or step; for a collective its operation: "all_reduce"
  int worker = 0;          // index of the worker
  int device = kNoDevice;  // index into Timeline::devices; kNoDevice for steps
  int stream = 0;          // of that device
  int step = kNoStep;      // the step in which it was issued
  Nanoseconds start_ns = 0;
  Nanoseconds end_ns = 0;
  double bytes = 0;  // ops: read plus written; copies: copied; collectives: the buffer of one rank
  double flops = 0;
  int ranks = 0;              // collectives: devices taking part
  int calls = 1;              // collectives: how many equal calls of other groups this one represents, itself included
  std::int64_t sequence = 0;  // collectives: equal on all ranks of one call, unique in the run
  Name algorithm{};           // collectives: what the engine chose, "ring LL128, 24 channels"; empty: no choice
};

struct TimelineDevice {
  std::string name;  // "/job:worker/replica:0/task:0/device:CPU:1"
  int worker = 0;
  // What the program took over the whole run, where the device is a real one of this process: tensors, their bytes, and
  // the most bytes that it held. Ops under way that still need a tensor do not count as holding it, but functions do.
  std::int64_t allocations = 0, allocated_bytes = 0, memory_peak_bytes = 0;
};

// Workers that did the same, so that the records of one of them represent all.
struct WorkerClass {
  int representative = 0;  // index of the worker that has the records
  int workers = 1;         // itself included
};

// What a link of a simulated topology carried in one direction. If workers represent others, only the links of their
// machines, and those of the fabric, are there.
struct LinkUse {
  std::string from, to;            // names of nodes
  std::string from_kind, to_kind;  // "gpu", "nvswitch"
  std::string kind;                // "nvlink"
  double bytes = 0;                // as the model of collectives moves them, with what protocols add
  double bytes_per_s = 0;          // its bandwidth
};

// What the driver of a GPU said about it during a measured run.
struct GpuUse {
  std::string gpu;  // "GPU 0"
  int readings = 0;
  int slowed = 0;                        // readings at which heat or the power supply held its clocks down
  std::vector<std::string> slowed_by{};  // what did
  int power_limited = 0;                 // readings at which its own power limit did
  int other_programs = 0;                // the most that used it beside this one
  double others_share = 0;               // the part of its time that these used, as the mean over the readings

  bool operator==(const GpuUse&) const = default;
};

struct Timeline {
  std::string engine;                           // "cpu", "sim"
  std::vector<TimelineDevice> devices;          // of the cluster; without names where others represent them
  std::vector<Record> records;                  // ordered by start, then worker, device, stream
  std::map<std::string, std::string> settings;  // what decided the times: network model, threads, versions
  std::vector<WorkerClass> classes{};           // empty: every worker has its own records
  int alike_devices = 1;                        // of a worker, for which the first of them has records
  std::vector<LinkUse> links{};                 // simulations: those that carried anything
  std::vector<GpuUse> gpus{};                   // real ones, where the driver says it
  std::vector<std::string> notes;               // caveats for the reader: "extrapolated: all_reduce beyond 64 MB"
  // Engines that model a machine: which inputs decided anything, among those that a run may have no use for. They are
  // options by their names in EngineOptions ("collectives", "graphs", "nccl", "work_spread"), "channels_last" of
  // ConvolutionShape, and figures of the topology by the id of their model ("nvlink.latency").
  std::set<std::string> consulted{};
};

// Sorts as Timeline::records are: by start, then worker, device, stream; equal ones keep their order.
void sort_records(std::vector<Record>& records);

// One call of a collective. Its duration counts from the last rank's arrival to the last rank's end. Where devices are
// threads, a rank ends once it has a core again, so that the first rank's end is that of the work.
struct CollectiveTiming {
  const Record* record = nullptr;  // the first of its records
  Nanoseconds duration_ns = 0;
  Nanoseconds until_first_end_ns = 0;
};
// Returns the calls among the records that `counts` accepts (empty: all), ordered by their sequence numbers.
std::vector<CollectiveTiming> collective_timings(const std::vector<Record>& records,
                                                 const std::function<bool(const Record&)>& counts = {});

}  // namespace tandem
