#include "reports/timeline/period.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tandem {
namespace {

constexpr Nanoseconds kRounding = 2;  // of the difference between two rounded times

using Records = std::span<const Record>;

// Two stretches of equal length, of which the second begins where the first one ends.
struct Repetition {
  Nanoseconds first = 0, second = 0, end = 0;
  std::map<std::int64_t, std::int64_t> twins{};  // sequence numbers of calls: of the second stretch -> of the first

  Nanoseconds length() const { return end - second; }
};

// Returns the records that start in a stretch. `records` must ascend.
Records starting_in(Records records, Nanoseconds from, Nanoseconds to) {
  const auto before = [](Nanoseconds time) { return [time](const Record& record) { return record.start_ns < time; }; };
  const auto begin = std::partition_point(records.begin(), records.end(), before(from));
  const auto end = std::partition_point(begin, records.end(), before(to));
  return records.subspan(static_cast<std::size_t>(begin - records.begin()), static_cast<std::size_t>(end - begin));
}

// Returns the work of devices, stream by stream.
std::vector<const Record*> by_stream(Records records) {
  std::vector<const Record*> work;
  work.reserve(records.size());
  for (const Record& record : records) {
    if (record.kind != RecordKind::step) work.push_back(&record);
  }
  std::stable_sort(work.begin(), work.end(), [](const Record* one, const Record* other) {
    return std::pair(one->device, one->stream) < std::pair(other->device, other->stream);
  });
  return work;
}

bool is_near(Nanoseconds one, Nanoseconds other) {
  return one - other <= kRounding && other - one <= kRounding;
}

// Whether a record is another one's repetition, `later` after it.
bool repeats(const Record& one, const Record& next, Nanoseconds later) {
  const auto what = [](const Record& record) {
    return std::tuple(record.kind, record.category, record.name, record.device, record.stream, record.bytes,
                      record.flops, record.ranks, record.calls, record.algorithm);
  };
  return what(one) == what(next) && is_near(one.start_ns + later, next.start_ns) &&
         is_near(one.end_ns + later, next.end_ns);
}

// Whether the second stretch repeats the first one. Fills in the calls that are each other's twins.
bool repeats(Records records, Repetition& repetition) {
  const Records first = starting_in(records, repetition.first, repetition.second);
  const Records second = starting_in(records, repetition.second, repetition.end);
  if (first.size() != second.size() || first.empty()) return false;
  const std::vector<const Record*> one = by_stream(first), next = by_stream(second);
  if (one.size() != next.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (!repeats(*one[i], *next[i], repetition.length())) return false;
    if (one[i]->kind == RecordKind::collective) repetition.twins[next[i]->sequence] = one[i]->sequence;
  }
  return true;
}

// Returns the starts of an op that a device computes once in every pass of the step: of several the one that comes
// last, in a backward pass, because forward passes run ahead while a pipeline fills. Empty where there is none.
std::vector<Nanoseconds> ticks_of(Records step, int step_index, int passes) {
  std::map<int, std::unordered_map<std::string_view, std::vector<Nanoseconds>>> starts;  // by device and name
  for (const Record& record : step) {
    if (record.kind != RecordKind::op || record.category != Category::compute || record.step != step_index) continue;
    starts[record.device][record.name.text()].push_back(record.start_ns);
  }
  std::vector<Nanoseconds> ticks;
  for (const auto& [device, by_name] : starts) {
    for (const auto& [name, all] : by_name) {
      const bool is_later = ticks.empty() || all.front() > ticks.front();
      if (all.size() == static_cast<std::size_t>(passes) && is_later) ticks = all;
    }
    if (!ticks.empty()) return ticks;
  }
  return ticks;
}

struct TimedStep {
  Records records;
  std::vector<Nanoseconds> ticks;
};

std::optional<Repetition> repetition_in(const TimedStep& step, int period) {
  const std::vector<Nanoseconds>& ticks = step.ticks;
  const auto distance = static_cast<std::size_t>(period);
  for (std::size_t i = 0; i + 2 * distance < ticks.size(); ++i) {
    const Nanoseconds length = ticks[i + 2 * distance] - ticks[i + distance];
    if (!is_near(ticks[i + distance] - ticks[i], length)) continue;
    // Work that begins together with the tick is in the same stretch, however its start was rounded.
    const Nanoseconds second = ticks[i + distance] - kRounding - 1;
    Repetition found{.first = second - length, .second = second, .end = second + length};
    if (repeats(step.records, found)) return found;
  }
  return std::nullopt;
}

std::map<int, std::pair<Nanoseconds, Nanoseconds>> times_of_steps(const Timeline& timeline) {
  std::map<int, std::pair<Nanoseconds, Nanoseconds>> times;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::step) continue;
    const auto [known, is_new] = times.try_emplace(record.step, record.start_ns, record.end_ns);
    if (is_new) continue;
    known->second = {std::min(known->second.first, record.start_ns), std::max(known->second.second, record.end_ns)};
  }
  return times;
}

std::vector<TimedStep> timed_steps(const Timeline& timeline, int passes) {
  std::vector<TimedStep> steps;
  for (const auto& [step, time] : times_of_steps(timeline)) {
    const Records records = starting_in(timeline.records, time.first, time.second);
    steps.push_back({.records = records, .ticks = ticks_of(records, step, passes)});
  }
  return steps;
}

// Returns one repetition of each step; none if some step has none.
std::vector<Repetition> repetitions_in(std::span<const TimedStep> steps, int period) {
  std::vector<Repetition> repetitions;
  for (const TimedStep& step : steps) {
    std::optional<Repetition> found = repetition_in(step, period);
    if (!found) return {};
    repetitions.push_back(std::move(*found));
  }
  return repetitions;
}

// How much earlier something begins that began at `time`.
Nanoseconds left_out_before(std::span<const Repetition> repetitions, Nanoseconds time) {
  Nanoseconds sum = 0;
  for (const Repetition& one : repetitions) sum += one.end <= time ? one.length() : 0;
  return sum;
}

bool is_left_out(std::span<const Repetition> repetitions, const Record& record) {
  return record.kind != RecordKind::step && std::ranges::any_of(repetitions, [&record](const Repetition& one) {
           return record.start_ns >= one.second && record.start_ns < one.end;
         });
}

// A call that some ranks reach in the stretch that is left out, and others after it, is joined by the latter in the
// stretch before it.
std::int64_t sequence_without(std::span<const Repetition> repetitions, const Record& record) {
  for (const Repetition& one : repetitions) {
    const auto twin = one.twins.find(record.sequence);
    if (record.start_ns >= one.end && twin != one.twins.end()) return twin->second;
  }
  return record.sequence;
}

}  // namespace

std::optional<ShorterSteps> without_a_period(const Timeline& timeline, int passes, int period, int most) {
  const std::vector<TimedStep> steps = timed_steps(timeline, passes);
  std::vector<Repetition> repetitions;
  int repeated = 0;
  for (int multiple = 1; multiple <= most && repetitions.empty(); ++multiple) {
    repeated = multiple * period;
    repetitions = repetitions_in(steps, repeated);
  }
  if (repetitions.empty()) return std::nullopt;
  Timeline shorter{.engine = timeline.engine,
                   .devices = timeline.devices,
                   .records = {},
                   .settings = timeline.settings,
                   .classes = timeline.classes,
                   .alike_devices = timeline.alike_devices,
                   .links = timeline.links,
                   .gpus = timeline.gpus,
                   .notes = timeline.notes,
                   .consulted = timeline.consulted};
  shorter.records.reserve(timeline.records.size());
  for (Record record : timeline.records) {
    if (is_left_out(repetitions, record)) continue;
    if (record.kind == RecordKind::collective) record.sequence = sequence_without(repetitions, record);
    const Nanoseconds earlier = left_out_before(repetitions, record.start_ns);
    record.end_ns -= record.kind == RecordKind::step ? left_out_before(repetitions, record.end_ns) : earlier;
    record.start_ns -= earlier;
    shorter.records.push_back(record);
  }
  sort_records(shorter.records);
  return ShorterSteps{.timeline = std::move(shorter), .period = repeated};
}

}  // namespace tandem
