#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/collective.h"
#include "reports/base/statistics.h"
#include "reports/run/report.h"
#include "reports/run/step_parts.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// Measured steps, in ascending order.
using Steps = std::vector<int>;

bool contains(const Steps& steps, int step) {
  return std::binary_search(steps.begin(), steps.end(), step);
}

// Returns how long the steps of each worker took, by index.
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

std::vector<CollectiveSummary> collectives_of(const Timeline& timeline, const Steps& steps) {
  const auto counts = [&steps](const Record& record) { return contains(steps, record.step); };
  std::map<CallKey, std::vector<Nanoseconds>> times;
  std::map<CallKey, std::string> algorithms;  // of the last call
  for (const CollectiveTiming& call : collective_timings(timeline.records, counts)) {
    const Record* const record = call.record;
    const CallKey key = key_of(*record);
    times[key].insert(times[key].end(), static_cast<std::size_t>(record->calls), call.duration_ns);
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

void add_waiting(Summary& summary, Waiting waiting) {
  summary.ranks = std::move(waiting.ranks);
  for (CollectiveSummary& collective : summary.collectives) {
    const auto found = waiting.calls.find({collective.operation, collective.devices, collective.bytes});
    if (found == waiting.calls.end()) continue;
    Nanoseconds sum = 0, devices = 0;
    for (const CallShare& share : found->second) {
      const int represented = summary.ranks.at(static_cast<std::size_t>(share.rank)).devices;
      sum += share.waiting * represented;
      devices += represented;
    }
    TANDEM_CHECK(devices > 0, "a call of no device");
    collective.waiting_ns = sum / devices;
    if (sum > 0 && summary.ranks.size() <= kMostRanksOfCalls) collective.ranks = found->second;
  }
}

}  // namespace

Summary summarize(const Timeline& timeline, int warmup_steps, Pace pace, RecordLevel records, Figures figures) {
  const Steps steps = measured_steps(timeline, warmup_steps);
  Summary summary{.step_time = step_time_of(times_of(timeline, steps, pace), pace == Pace::in_step),
                  .per_step = {},
                  .collectives = {},
                  .workers = {}};
  MeanSteps means{.all = summary.step_time.mean};
  for (const auto& [worker, times] : times_by_worker(timeline, steps)) {
    summary.workers.push_back({.step_time = step_time_of(times, true), .per_step = {}});
    means.workers[worker] = summary.workers.back().step_time.mean;
  }
  if (figures == Figures::all) {
    summary.collectives = collectives_of(timeline, steps);
    add_waiting(summary, waiting_of(timeline, steps));
  }
  if (records != RecordLevel::all) return summary;
  const DividedSteps divided = divide_steps(timeline, steps, pace, means);
  summary.per_step = divided.per_step;
  summary.other_devices = divided.other_devices;
  if (figures == Figures::all) summary.critical_path = critical_path_of(timeline, steps, pace);
  auto worker = summary.workers.begin();
  for (const auto& [index, per_step] : divided.workers) (worker++)->per_step = per_step;
  return summary;
}

}  // namespace tandem
