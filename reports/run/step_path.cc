#include "reports/run/step_path.h"

#include <algorithm>

#include "reports/timeline/collective_waits.h"

namespace tandem {
namespace {

// Finds, among work that ended inside the window, what ended last before a given time.
class EndedWork {
 public:
  EndedWork(const Timeline& timeline, Interval window) {
    for (const Record& record : timeline.records) {
      if (!ends_in(window, record)) continue;
      by_device_[record.device].push_back(&record);
      all_.push_back(&record);
    }
    calls_ = calls_of(timeline, [&window](const Record& record) { return ends_in(window, record); });
    for (auto& [device, records] : by_device_) sort(records);
    sort(all_);
  }

  // Returns the record that ended last of all.
  const Record* last() const { return all_.empty() ? nullptr : first_of_equals(all_, all_.end()); }

  // Returns the rank of a call that arrived last, if that was before `record` ended; otherwise the record itself.
  const Record& began_by(const Record& record) const {
    if (record.kind != RecordKind::collective) return record;
    const Record& last = *calls_.at(record.sequence).last;
    return last.start_ns < record.end_ns ? last : record;
  }

  // Returns the record that let `device` go on at `time`; null if nothing ended before.
  const Record* cause(int device, Nanoseconds time) const {
    const Record* own = ended_by(by_device_.at(device), time);
    return own != nullptr && own->end_ns == time ? own : ended_by(all_, time);
  }

 private:
  using Records = std::vector<const Record*>;

  static bool ends_in(Interval window, const Record& record) {
    if (record.kind == RecordKind::step || record.device == kNoDevice || record.start_ns == record.end_ns) return false;
    return record.end_ns > window.start && record.end_ns <= window.end;
  }

  // Equal records stay in the order of the timeline, in which one that represents others comes first.
  static void sort(Records& records) {
    std::stable_sort(records.begin(), records.end(),
                     [](const Record* a, const Record* b) { return a->end_ns < b->end_ns; });
  }
  static const Record* first_of_equals(const Records& records, Records::const_iterator end) {
    const Nanoseconds time = (*std::prev(end))->end_ns;
    return *std::partition_point(records.begin(), end, [time](const Record* record) { return record->end_ns < time; });
  }
  static const Record* ended_by(const Records& records, Nanoseconds time) {
    const auto later = std::partition_point(records.begin(), records.end(),
                                            [time](const Record* record) { return record->end_ns <= time; });
    return later == records.begin() ? nullptr : first_of_equals(records, later);
  }

  std::map<int, Records> by_device_;
  Records all_;
  std::map<std::int64_t, CallRanks> calls_;
};

}  // namespace

TakenStep median_step_of(const Timeline& timeline, const std::vector<int>& steps, Pace pace) {
  std::map<std::pair<int, int>, TakenStep> samples;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::step || !std::binary_search(steps.begin(), steps.end(), record.step)) continue;
    const Interval time{record.start_ns, record.end_ns};
    TakenStep& sample =
        samples.try_emplace({record.step, pace == Pace::in_step ? 0 : record.worker}, TakenStep{record.step, time})
            .first->second;
    sample.time = {std::min(sample.time.start, time.start), std::max(sample.time.end, time.end)};
  }
  std::vector<TakenStep> sorted;
  for (const auto& [key, sample] : samples) sorted.push_back(sample);
  std::stable_sort(sorted.begin(), sorted.end(), [](const TakenStep& a, const TakenStep& b) {
    return a.time.end - a.time.start < b.time.end - b.time.start;
  });
  return sorted.at((sorted.size() - 1) / 2);
}

StepPath step_path(const Timeline& timeline, Interval window) {
  const EndedWork work(timeline, window);
  StepPath path;
  Nanoseconds reached = window.end;
  for (const Record* record = work.last(); record != nullptr && reached > window.start;) {
    const Record& begun = work.began_by(*record);
    const Interval time{std::max(begun.start_ns, window.start), record->end_ns};
    path.idle += reached - time.end;
    path.by_category[record->category] += time.end - time.start;
    path.parts.push_back({.record = record, .time = time});
    reached = time.start;
    record = work.cause(begun.device, reached);
  }
  path.idle += reached - window.start;
  std::reverse(path.parts.begin(), path.parts.end());
  return path;
}

}  // namespace tandem
