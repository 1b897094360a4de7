// What the pictures of a run need beyond its report: the records of the step of median length, and who waited for whom
// in collectives. It is small enough to be part of a page: long timelines are drawn more coarsely, and where there are
// many devices some are left out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/timeline.h"
#include "reports/run/memory_curve.h"
#include "reports/run/report.h"

namespace tandem {

class JsonField;

// One or more records of a stream. Times are relative to the start of the step.
struct StepBar {
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  Category category = Category::compute;
  std::string name;           // "all_reduce"; "12 x compute" for several records that are drawn as one
  bool arrived_last = false;  // a collective for which the other ranks waited for this one
};

// One stream of a device.
struct StepLane {
  std::string device;
  int devices = 1;  // those that this one represents, itself included
  int stream = 0;
  std::vector<StepBar> bars;
  std::string label{};  // in pictures; empty: the device and stream. Documents do not have it
};

// A stretch of the critical path.
struct CriticalStretch {
  int lane = 0;  // index into StepPicture::lanes
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};

struct StepPicture {
  int step = 0;
  Nanoseconds length = 0;
  std::vector<StepLane> lanes;
  int lanes_left_out = 0;
  // The critical path (step_path.h): its time by category and idle, which add up to the length, and its stretches on
  // these lanes.
  std::vector<std::pair<Category, Nanoseconds>> critical;
  Nanoseconds critical_idle = 0;
  std::vector<CriticalStretch> critical_stretches{};
};

struct DeviceWaits {
  std::string device;
  int calls = 0;
  int last_arrivals = 0;
  Nanoseconds transferred = 0;
  std::vector<Nanoseconds> waited_by_step;
};

// The links of a simulated topology that were used most for their bandwidth.
struct LinkPicture {
  Nanoseconds time = 0;  // of the whole run, warm-up included
  std::vector<LinkUse> links;
  int links_left_out = 0;

  // Returns the share of the time that the link would need for its bytes.
  double use_of(const LinkUse& link) const;
};

// The greatest bus bandwidth of an operation on `devices` devices that a topology allows.
struct CollectiveBound {
  std::string operation;
  int devices = 0;
  double bus_bandwidth = 0;  // bytes/s
  std::string limited_by;    // "the links of w0.gpu0"
};

struct RunDetails {
  StepPicture median_step;
  std::vector<int> steps;  // the measured steps, to which DeviceWaits::waited_by_step refers
  std::vector<DeviceWaits> waits;
  int waits_left_out = 0;
  LinkPicture links{};
  std::vector<CollectiveBound> bounds{};  // for predictions, and measured runs with a topology
  std::optional<MemoryCurve> memory{};    // for predictions of tables of layers
};

// Limits of what a page has.
inline constexpr int kMostLanes = 64;
inline constexpr int kMostBars = 2000;
inline constexpr std::size_t kMostStretches = 1000;
inline constexpr int kMostWaitCells = 1200;
inline constexpr int kMostLinks = 400;

// Merges short neighbouring bars, and near stretches of the critical path, until there are at most so many of them.
void make_coarse(StepPicture& picture, int most_bars = kMostBars);
// Joins stretches of a lane with less than `gap` between them.
std::vector<CriticalStretch> joined(std::vector<CriticalStretch> stretches, Nanoseconds gap);

// Collects the details. Throws Error when no step remains after the warm-up, as summarize() does.
RunDetails run_details(const Timeline& timeline, int warmup_steps, Pace pace);

nlohmann::ordered_json run_details_to_json(const RunDetails& details);
RunDetails run_details_from_json(const JsonField& field);

}  // namespace tandem
