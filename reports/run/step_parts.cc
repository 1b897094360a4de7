#include "reports/run/step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "reports/base/intervals.h"
#include "reports/timeline/collective_waits.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// The categories in the order of PerStep. An instant belongs to the first one that has work at that time.
constexpr std::array kRanking{Category::compute, Category::update, Category::input, Category::communication,
                              Category::other};

// Times in the order of step_figures(), summed over devices or steps.
constexpr std::size_t kParts = kRanking.size() + 1, kIdle = kRanking.size(), kInput = kParts,
                      kCommunication = kParts + 1;
using Times = std::array<Nanoseconds, kParts + 2>;

// The work on a device: for each category, the intervals that no earlier category covers.
struct DeviceWork {
  int worker = 0;
  int devices = 1;  // represented by this one, itself included
  std::array<IntervalSet, kRanking.size()> exposed;
  IntervalSet input, communication;
};

struct DeviceRecords {
  int worker = 0;
  int devices = 1;
  bool computes = false;  // in a measured step
  std::array<std::vector<Interval>, kRanking.size()> work;
};

std::size_t rank_of(Category category) {
  return static_cast<std::size_t>(std::find(kRanking.begin(), kRanking.end(), category) - kRanking.begin());
}

std::map<int, DeviceRecords> records_by_device(const Timeline& timeline, const std::vector<int>& steps) {
  std::map<int, DeviceRecords> devices;
  const std::map<int, int> workers = workers_represented(timeline);
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::step || record.device == kNoDevice) continue;
    const auto [known, is_new] = devices.try_emplace(record.device);
    DeviceRecords& device = known->second;
    if (is_new) {
      device.worker = record.worker;
      if (const auto one = workers.find(record.worker); one != workers.end()) device.devices = one->second;
    }
    device.work[rank_of(record.category)].push_back({record.start_ns, record.end_ns});
    if (record.category == Category::compute && !device.computes) {
      device.computes = std::binary_search(steps.begin(), steps.end(), record.step);
    }
  }
  return devices;
}

DeviceWork work_of(DeviceRecords&& records) {
  DeviceWork work{
      .worker = records.worker, .devices = records.devices, .exposed = {}, .input = {}, .communication = {}};
  IntervalSet covered;
  for (std::size_t rank = 0; rank < kRanking.size(); ++rank) {
    IntervalSet all = union_of(std::move(records.work[rank]));
    work.exposed[rank] = difference_of(all, covered);
    covered.insert(covered.end(), all.begin(), all.end());
    covered = union_of(std::move(covered));
    if (kRanking[rank] == Category::input) {
      work.input = std::move(all);
    } else if (kRanking[rank] == Category::communication) {
      work.communication = std::move(all);
    }
  }
  return work;
}

// Returns what a device did in an interval.
Times times_in(const Interval& interval, const DeviceWork& work) {
  const IntervalSet whole{interval};
  Times times{};
  Nanoseconds idle = interval.end - interval.start;
  for (std::size_t rank = 0; rank < kRanking.size(); ++rank) {
    times[rank] = overlap_of(whole, work.exposed[rank]);
    idle -= times[rank];
  }
  times[kIdle] = idle;
  times[kInput] = overlap_of(whole, work.input);
  times[kCommunication] = overlap_of(whole, work.communication);
  return times;
}

// A step as the report counts it, with the times of the devices that train in it.
struct Sample {
  Nanoseconds length = 0;
  Times sum{};
  int devices = 0;
};

// Collects samples by a key, and averages them.
class Samples {
 public:
  using Key = std::pair<int, int>;

  void extend(Key key, Nanoseconds length) { samples_[key].length = std::max(samples_[key].length, length); }

  // Adds what each of `devices` devices did in its worker's step. If the sample is longer, the devices were idle for
  // the rest of it, because others were not done.
  void add(Key key, const Times& times, Nanoseconds step, int devices) {
    Sample& sample = samples_.at(key);
    for (std::size_t i = 0; i < times.size(); ++i) sample.sum[i] += times[i] * devices;
    sample.sum[kIdle] += (sample.length - step) * devices;
    sample.devices += devices;
  }

  // Returns the mean over the devices and the samples. Rounds it so that it adds up to `mean`, that of the lengths.
  PerStep average(Nanoseconds mean) const;

 private:
  std::map<Key, Sample> samples_;
};

// Multiplies times by `factor` and rounds them so that the parts add up to `whole`; the largest part takes the rest.
PerStep rounded(const std::array<double, kParts + 2>& times, double factor, Nanoseconds whole) {
  PerStep per_step;
  Nanoseconds rest = whole;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Nanoseconds time = std::llround(times[i] * factor);
    per_step.*step_figures()[i].time = time;
    if (i < kParts) rest -= time;
  }
  const std::size_t largest =
      static_cast<std::size_t>(std::max_element(times.begin(), times.begin() + kParts) - times.begin());
  per_step.*step_figures()[largest].time += rest;
  return per_step;
}

PerStep Samples::average(Nanoseconds mean) const {
  std::array<double, kParts + 2> times{};
  for (const auto& [key, sample] : samples_) {
    if (sample.devices == 0) times[kIdle] += static_cast<double>(sample.length);
    for (std::size_t t = 0; t < times.size() && sample.devices > 0; ++t) {
      times[t] += static_cast<double>(sample.sum[t]) / sample.devices;
    }
  }
  return rounded(times, 1 / static_cast<double>(samples_.size()), mean);
}

// A step of a worker.
struct Window {
  Interval time;
  int step = 0;
};
using Windows = std::map<int, std::vector<Window>>;

Windows windows_of(const Timeline& timeline, const std::vector<int>& steps) {
  Windows windows;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::step || !std::binary_search(steps.begin(), steps.end(), record.step)) continue;
    windows[record.worker].push_back({{record.start_ns, record.end_ns}, record.step});
  }
  return windows;
}

// From the beginning of the first step to the end of the last one.
Interval measured_time(const Windows& windows) {
  Interval all = windows.begin()->second.front().time;
  for (const auto& [worker, of_worker] : windows) {
    for (const Window& window : of_worker) {
      all = {std::min(all.start, window.time.start), std::max(all.end, window.time.end)};
    }
  }
  return all;
}

class Division {
 public:
  Division(Windows windows, Pace pace) : windows_(std::move(windows)), pace_(pace) {
    for (const auto& [worker, of_worker] : windows_) {
      for (const Window& window : of_worker) {
        const Nanoseconds length = window.time.end - window.time.start;
        all_.extend(key(worker, window.step), length);
        workers_[worker].extend({window.step, 0}, length);
      }
    }
  }

  // A device whose worker has no steps, such as one driven by a coordinator, is counted in the steps of the first
  // worker.
  void add(const DeviceWork& device) {
    const auto own = windows_.find(device.worker);
    const auto& [worker, of_worker] = own == windows_.end() ? *windows_.begin() : *own;
    for (const Window& window : of_worker) {
      const Times times = times_in(window.time, device);
      const Nanoseconds length = window.time.end - window.time.start;
      all_.add(key(worker, window.step), times, length, device.devices);
      workers_.at(worker).add({window.step, 0}, times, length, device.devices);
    }
  }

  void finish(const MeanSteps& means, DividedSteps& divided) const {
    divided.per_step = all_.average(means.all);
    for (const auto& [worker, samples] : workers_) divided.workers[worker] = samples.average(means.workers.at(worker));
  }

 private:
  Samples::Key key(int worker, int step) const { return {step, pace_ == Pace::in_step ? 0 : worker}; }

  Windows windows_;
  Pace pace_;
  Samples all_;
  std::map<int, Samples> workers_;
};

// Finds the busiest device among those that train nothing.
class Busiest {
 public:
  explicit Busiest(Interval measured) : measured_(measured) {}

  void add(const std::string& name, const DeviceWork& device) {
    const Times times = times_in(measured_, device);
    if (times[kIdle] == measured_.end - measured_.start) return;  // it worked before the first step only
    const bool is_first = count_ == 0;
    count_ += device.devices;
    if (!is_first && times[kIdle] >= times_[kIdle]) return;
    name_ = name;
    times_ = times;
  }

  std::optional<OtherDevices> result(Nanoseconds mean) const {
    if (count_ == 0) return std::nullopt;
    std::array<double, kParts + 2> times{};
    std::copy(times_.begin(), times_.end(), times.begin());
    const Nanoseconds length = measured_.end - measured_.start;
    const double factor = length > 0 ? static_cast<double>(mean) / static_cast<double>(length) : 0;
    return OtherDevices{.busiest = name_, .count = count_, .per_step = rounded(times, factor, mean)};
  }

 private:
  Interval measured_;
  std::string name_;
  Times times_{};
  int count_ = 0;
};

}  // namespace

std::vector<int> measured_steps(const Timeline& timeline, int warmup_steps) {
  std::set<int> steps;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::step && record.step != kNoStep) steps.insert(record.step);
  }
  const auto first = steps.lower_bound(warmup_steps);  // a run that goes on after another one begins at a later step
  if (first == steps.end()) {
    throw Error(fmt::format("no step is left to report: {} steps were run and the first {} are warm-up", steps.size(),
                            warmup_steps));
  }
  return {first, steps.end()};
}

DividedSteps divide_steps(const Timeline& timeline, const std::vector<int>& steps, Pace pace, const MeanSteps& means) {
  std::map<int, DeviceRecords> devices = records_by_device(timeline, steps);
  const bool any_computes =
      std::any_of(devices.begin(), devices.end(), [](const auto& device) { return device.second.computes; });
  const Windows windows = windows_of(timeline, steps);
  Division division(windows, pace);
  Busiest others(measured_time(windows));
  for (auto& [index, records] : devices) {
    const bool trains = any_computes ? records.computes : windows.contains(records.worker);
    const DeviceWork work = work_of(std::move(records));
    if (trains) {
      division.add(work);
    } else {
      others.add(timeline.devices.at(static_cast<std::size_t>(index)).name, work);
    }
  }
  DividedSteps divided{.per_step = {}, .other_devices = others.result(means.all)};
  division.finish(means, divided);
  return divided;
}

}  // namespace tandem
