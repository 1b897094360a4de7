#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "engine/collective.h"
#include "reports/intervals.h"
#include "reports/report.h"
#include "reports/statistics.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// The measured steps, in ascending order.
using Steps = std::vector<int>;

Steps measured_steps(const Timeline& timeline, int warmup_steps) {
  std::set<int> steps;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::step && record.step != kNoStep) steps.insert(record.step);
  }
  if (steps.size() <= static_cast<std::size_t>(std::max(0, warmup_steps))) {
    throw Error(fmt::format("no step is left to report: {} steps were run and the first {} are warm-up", steps.size(),
                            warmup_steps));
  }
  return {std::next(steps.begin(), std::max(0, warmup_steps)), steps.end()};
}

bool contains(const Steps& steps, int step) {
  return std::binary_search(steps.begin(), steps.end(), step);
}

StepTime step_time_of(const std::vector<Nanoseconds>& times) {
  return {.median = median_of(times),
          .min = *std::min_element(times.begin(), times.end()),
          .p95 = p95_of(times),
          .median_absolute_deviation = median_absolute_deviation(times),
          .samples = static_cast<int>(times.size())};
}

// Summarizes the steps of each worker, by index.
std::map<int, std::vector<Nanoseconds>> times_by_worker(const Timeline& timeline, const Steps& steps) {
  std::map<int, std::vector<Nanoseconds>> times;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::step || !contains(steps, record.step)) continue;
    times[record.worker].push_back(record.end_ns - record.start_ns);
  }
  return times;
}

// Returns how long each step took: as long as its slowest worker.
std::vector<Nanoseconds> times_of(const Timeline& timeline, const Steps& steps, Pace pace) {
  std::map<std::pair<int, int>, Nanoseconds> longest;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::step || !contains(steps, record.step)) continue;
    Nanoseconds& time = longest[{record.step, pace == Pace::in_step ? 0 : record.worker}];
    time = std::max(time, record.end_ns - record.start_ns);
  }
  std::vector<Nanoseconds> times;
  times.reserve(longest.size());
  for (const auto& [step, time] : longest) times.push_back(time);
  return times;
}

constexpr std::size_t kCategories = 5;  // of enum Category

// The intervals of one device in one step.
struct DeviceStep {
  std::array<std::vector<Interval>, kCategories> work;
};

// The intervals of all work of one device, by step and altogether, and of its work other than communication.
struct DeviceWork {
  int worker = 0;
  std::map<int, DeviceStep> steps;
  std::vector<Interval> all;
  std::vector<Interval> busy;
};

std::map<int, DeviceWork> work_by_device(const Timeline& timeline, const Steps& steps) {
  std::map<int, DeviceWork> devices;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::step || record.device == kNoDevice) continue;
    DeviceWork& device = devices[record.device];
    const Interval interval{record.start_ns, record.end_ns};
    device.worker = record.worker;
    device.all.push_back(interval);
    if (record.category != Category::communication && record.category != Category::other) {
      device.busy.push_back(interval);
    }
    if (contains(steps, record.step)) {
      device.steps[record.step].work[static_cast<std::size_t>(record.category)].push_back(interval);
    }
  }
  return devices;
}

// Collects one figure: the mean over the devices that have it for each step, then the median over the steps.
class Phase {
 public:
  // Adds the time of one device in one step.
  void add(int device, int step, Nanoseconds time) {
    devices_.insert(device);
    sum_by_step_[step] += time;
  }
  Nanoseconds median(const Steps& steps) const {
    if (devices_.empty()) return 0;
    std::vector<Nanoseconds> means;
    for (const int step : steps) {
      const auto sum = sum_by_step_.find(step);
      means.push_back(sum == sum_by_step_.end() ? 0 : sum->second / static_cast<Nanoseconds>(devices_.size()));
    }
    return median_of(std::move(means));
  }

 private:
  std::set<int> devices_;
  std::map<int, Nanoseconds> sum_by_step_;
};

// The interval of each step, by worker.
std::map<std::pair<int, int>, Interval> intervals_of_steps(const Timeline& timeline, const Steps& steps) {
  std::map<std::pair<int, int>, Interval> intervals;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::step && contains(steps, record.step)) {
      intervals[{record.worker, record.step}] = {record.start_ns, record.end_ns};
    }
  }
  return intervals;
}

// Returns how long a device was idle, within the steps in which it had work.
void add_idle(Phase& idle, int index, DeviceWork& device, const std::map<std::pair<int, int>, Interval>& step_times) {
  const IntervalSet all = union_of(std::move(device.all));
  for (const auto& [step, work] : device.steps) {
    const auto time = step_times.find({device.worker, step});
    if (time == step_times.end()) continue;
    const IntervalSet whole = union_of({time->second});
    idle.add(index, step, length_of(whole) - overlap_of(whole, all));
  }
}

PerStep per_step_of(const Timeline& timeline, const Steps& steps) {
  std::array<Phase, kCategories> phases;
  Phase exposed;
  Phase idle;
  const auto step_times = intervals_of_steps(timeline, steps);
  for (auto& [index, device] : work_by_device(timeline, steps)) {
    // Communication of one step may hide behind work of the next: exposure looks at all of the device's work.
    const IntervalSet busy = union_of(std::move(device.busy));
    add_idle(idle, index, device, step_times);
    for (auto& [step, intervals] : device.steps) {
      for (std::size_t category = 0; category < kCategories; ++category) {
        if (intervals.work[category].empty()) continue;
        const IntervalSet work = union_of(std::move(intervals.work[category]));
        phases[category].add(index, step, length_of(work));
        if (category == static_cast<std::size_t>(Category::communication)) {
          exposed.add(index, step, length_of(work) - overlap_of(work, busy));
        }
      }
    }
  }
  const auto median = [&](Category category) { return phases[static_cast<std::size_t>(category)].median(steps); };
  return {.compute = median(Category::compute),
          .communication = median(Category::communication),
          .exposed_communication = exposed.median(steps),
          .input = median(Category::input),
          .update = median(Category::update),
          .idle = idle.median(steps)};
}

std::vector<CollectiveSummary> collectives_of(const Timeline& timeline, const Steps& steps) {
  const auto counts = [&steps](const Record& record) { return contains(steps, record.step); };
  std::map<std::tuple<std::string, int, std::int64_t>, std::vector<Nanoseconds>> times;
  std::map<std::tuple<std::string, int, std::int64_t>, std::string> algorithms;  // of the last call
  for (const auto& [record, duration_ns] : collective_timings(timeline.records, counts)) {
    const std::tuple key{record->name, record->ranks, std::int64_t{std::llround(record->bytes)}};
    times[key].push_back(duration_ns);
    algorithms[key] = record->algorithm;
  }
  std::vector<CollectiveSummary> summaries;
  for (auto& [key, samples] : times) {
    const auto& [operation, devices, bytes] = key;
    CollectiveSummary summary{.operation = operation, .bytes = bytes, .devices = devices};
    summary.algorithm = algorithms[key];
    summary.calls_per_step = static_cast<int>((samples.size() + steps.size() / 2) / steps.size());
    summary.time_ns = median_of(std::move(samples));
    if (summary.time_ns > 0) {
      summary.algbw = static_cast<double>(bytes) / (static_cast<double>(summary.time_ns) * 1e-9);
      const auto kind = collective_of_record(operation);
      TANDEM_CHECK(kind, "no collective is called '" + operation + "'");
      summary.busbw = summary.algbw * bus_bandwidth_factor(*kind, devices);
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace

Summary summarize(const Timeline& timeline, int warmup_steps, Pace pace) {
  const Steps steps = measured_steps(timeline, warmup_steps);
  Summary summary{.step_time = step_time_of(times_of(timeline, steps, pace)),
                  .per_step = per_step_of(timeline, steps),
                  .collectives = collectives_of(timeline, steps),
                  .workers = {}};
  for (const auto& [worker, times] : times_by_worker(timeline, steps)) summary.workers.push_back(step_time_of(times));
  return summary;
}

}  // namespace tandem
