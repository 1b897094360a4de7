#include "reports/run/run_details.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/run/step_parts.h"
#include "reports/run/step_path.h"
#include "reports/timeline/collective_waits.h"

namespace tandem {
namespace {

// The lanes of a step, with a bar for each record.
class Lanes {
 public:
  Lanes(const Timeline& timeline, Interval window) : timeline_(timeline), window_(window) {
    const StepPath path = step_path(timeline, window);
    path_ = path.parts;
    picture_.length = window.end - window.start;
    picture_.critical.assign(path.by_category.begin(), path.by_category.end());
    picture_.critical_idle = path.idle;
  }

  StepPicture draw() {
    for (const auto& [sequence, call] : calls_of(timeline_, [this](const Record& one) { return is_drawn(one); })) {
      if (const Record* record = call.awaited()) awaited_.insert(record);
    }
    std::map<std::pair<int, int>, StepLane> lanes;
    const std::map<int, int> represented = workers_represented(timeline_);
    for (const Record& record : timeline_.records) {
      if (!is_drawn(record)) continue;
      StepLane& lane = lanes[{record.device, record.stream}];
      lane.device = timeline_.devices.at(static_cast<std::size_t>(record.device)).name;
      lane.stream = record.stream;
      if (const auto one = represented.find(record.worker); one != represented.end()) lane.devices = one->second;
      lane.bars.push_back(bar_of(record));
    }
    for (auto& [key, lane] : lanes) {
      if (picture_.lanes.size() == kMostLanes) {
        ++picture_.lanes_left_out;
      } else {
        lane_index_[key] = static_cast<int>(picture_.lanes.size());
        picture_.lanes.push_back(std::move(lane));
      }
    }
    mark_path();
    return std::move(picture_);
  }

 private:
  bool is_drawn(const Record& record) const {
    return record.kind != RecordKind::step && record.device != kNoDevice && record.end_ns > window_.start &&
           record.start_ns < window_.end && record.end_ns > record.start_ns;
  }

  // Joins stretches of one lane that touch.
  void mark_path() {
    auto& stretches = picture_.critical_stretches;
    for (const PathPart& part : path_) {
      const auto lane = lane_index_.find({part.record->device, part.record->stream});
      if (lane == lane_index_.end()) continue;
      const Nanoseconds start = part.time.start - window_.start;
      if (stretches.empty() || stretches.back().lane != lane->second || stretches.back().end != start) {
        stretches.push_back({.lane = lane->second, .start = start});
      }
      stretches.back().end = part.time.end - window_.start;
    }
  }

  StepBar bar_of(const Record& record) const {
    return {.start = std::max(record.start_ns, window_.start) - window_.start,
            .end = std::min(record.end_ns, window_.end) - window_.start,
            .category = record.category,
            .name = record.name,
            .arrived_last = awaited_.contains(&record)};
  }

  const Timeline& timeline_;
  Interval window_;
  std::vector<PathPart> path_;
  std::set<const Record*> awaited_;
  std::map<std::pair<int, int>, int> lane_index_;
  StepPicture picture_;
};

// A bar for several records, with the category that takes most of their time.
struct MergedBar {
  explicit MergedBar(StepBar&& first) : bar(std::move(first)) { by_category[bar.category] = bar.end - bar.start; }

  void add(const StepBar& next) {
    bar.end = std::max(bar.end, next.end);
    bar.arrived_last |= next.arrived_last;
    by_category[next.category] += next.end - next.start;
    is_several = true;
  }
  StepBar finish(bool any_category) && {
    if (!is_several) return std::move(bar);
    const auto most = std::max_element(by_category.begin(), by_category.end(),
                                       [](const auto& one, const auto& other) { return one.second < other.second; });
    bar.category = most->first;
    bar.name = fmt::format("{}: {}", any_category ? "mostly" : "several", name_of(bar.category));
    return std::move(bar);
  }

  StepBar bar;
  std::map<Category, Nanoseconds> by_category;
  bool is_several = false;
};

// Merges close neighbours of a lane into one bar: those of the same category if one of them is short, or with
// `any_category` any neighbours, until the bar is as long as the resolution.
void merge_neighbours(StepLane& lane, Nanoseconds resolution, bool any_category) {
  std::vector<MergedBar> merged;
  const auto joins = [&](const StepBar& bar) {
    if (merged.empty()) return false;
    const StepBar& before = merged.back().bar;
    if (bar.start - before.end >= resolution) return false;
    if (any_category) return before.end - before.start < resolution;
    return before.category == bar.category && std::min(bar.end - bar.start, before.end - before.start) < resolution;
  };
  for (StepBar& bar : lane.bars) {
    if (joins(bar)) {
      merged.back().add(bar);
    } else {
      merged.emplace_back(std::move(bar));
    }
  }
  lane.bars.clear();
  for (MergedBar& one : merged) lane.bars.push_back(std::move(one).finish(any_category));
}

std::size_t bars_of(const StepPicture& picture) {
  std::size_t bars = 0;
  for (const StepLane& lane : picture.lanes) bars += lane.bars.size();
  return bars;
}

void add_waits(const Timeline& timeline, RunDetails& details) {
  const std::size_t most = std::clamp<std::size_t>(kMostWaitCells / details.steps.size(), 1, kMostLanes);
  for (RankWaits& one : waits_of(timeline, details.steps)) {
    if (details.waits.size() == most) {
      ++details.waits_left_out;
      continue;
    }
    details.waits.push_back({.device = timeline.devices.at(static_cast<std::size_t>(one.device)).name,
                             .calls = one.calls,
                             .last_arrivals = one.last_arrivals,
                             .transferred = one.transferred,
                             .waited_by_step = std::move(one.waited_by_step)});
  }
}

LinkPicture links_of(const Timeline& timeline) {
  LinkPicture picture{.links = timeline.links};
  if (timeline.records.empty()) return picture;
  Nanoseconds end = 0;
  for (const Record& record : timeline.records) end = std::max(end, record.end_ns);
  picture.time = end - timeline.records.front().start_ns;
  std::stable_sort(picture.links.begin(), picture.links.end(),
                   [&](const LinkUse& a, const LinkUse& b) { return picture.use_of(a) > picture.use_of(b); });
  if (picture.links.size() > kMostLinks) {
    picture.links_left_out = static_cast<int>(picture.links.size()) - kMostLinks;
    picture.links.resize(kMostLinks);
  }
  return picture;
}

}  // namespace

std::vector<CriticalStretch> joined(std::vector<CriticalStretch> stretches, Nanoseconds gap) {
  std::stable_sort(stretches.begin(), stretches.end(), [](const CriticalStretch& one, const CriticalStretch& other) {
    return std::pair(one.lane, one.start) < std::pair(other.lane, other.start);
  });
  std::vector<CriticalStretch> all;
  for (const CriticalStretch& one : stretches) {
    if (!all.empty() && all.back().lane == one.lane && one.start - all.back().end < gap) {
      all.back().end = std::max(all.back().end, one.end);
    } else {
      all.push_back(one);
    }
  }
  return all;
}

void make_coarse(StepPicture& picture, int most_bars) {
  const Nanoseconds finest = std::max<Nanoseconds>(1, picture.length / 4000);
  const auto most = static_cast<std::size_t>(most_bars);
  constexpr int kCoarsestOfOneCategory = 8;  // a coarser resolution would hide visible gaps
  for (const bool any_category : {false, true}) {
    const Nanoseconds coarsest = any_category ? picture.length : kCoarsestOfOneCategory * finest;
    for (Nanoseconds resolution = finest; bars_of(picture) > most && resolution <= coarsest; resolution *= 2) {
      for (StepLane& lane : picture.lanes) merge_neighbours(lane, resolution, any_category);
    }
  }
  std::vector<CriticalStretch>& stretches = picture.critical_stretches;
  for (Nanoseconds gap = finest; stretches.size() > kMostStretches && gap <= picture.length; gap *= 2) {
    stretches = joined(std::move(stretches), gap);
  }
}

double LinkPicture::use_of(const LinkUse& link) const {
  const double most = link.bytes_per_s * static_cast<double>(time) * 1e-9;
  return most > 0 ? link.bytes / most : 0;
}

RunDetails run_details(const Timeline& timeline, int warmup_steps, Pace pace) {
  RunDetails details;
  details.steps = measured_steps(timeline, warmup_steps);
  const TakenStep taken = median_step_of(timeline, details.steps, pace);
  details.median_step = Lanes(timeline, taken.time).draw();
  details.median_step.step = taken.step;
  make_coarse(details.median_step);
  // A long run shows only its last steps, so that every device has a row.
  constexpr std::size_t kMostSteps = 400;
  if (details.steps.size() > kMostSteps) {
    details.steps.erase(details.steps.begin(), details.steps.end() - std::ptrdiff_t{kMostSteps});
  }
  add_waits(timeline, details);
  details.links = links_of(timeline);
  return details;
}

}  // namespace tandem
