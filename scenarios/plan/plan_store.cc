#include "scenarios/plan/plan_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace tandem {

namespace fs = std::filesystem;

PlanStore::PlanStore(const SweepSpace& space, const std::vector<SweepSpace::Point>& points, fs::path results, Rank rank,
                     Events events)
    : space_(space),
      points_(points),
      identity_{space.base().name, space.base().hash},
      places_(space, points),
      ranks_(std::move(results), rank, identity_),
      events_(std::move(events)),
      is_seen_(points.size(), false) {}

void PlanStore::open(const std::function<void()>& tick, const std::function<void(const std::string&)>& note) {
  if (ranks_.mine().empty()) return;
  file_ = std::make_unique<ResultsFile>(ranks_.mine(), identity_, ResultsFile::kPatience, tick);
  const StoredPoints& stored = file_->stored();
  is_empty_ = stored.points.empty() && stored.of_plans.empty();
  if (stored.is_cut && note)
    note(fmt::format("{}: the last line was cut; its point runs again", ranks_.mine().string()));
  take(stored, true);
  copies_ = ranks_.is_first();
  take(ranks_.news(), true);
}

void PlanStore::hear() {
  if (ranks_.has_several()) take(ranks_.news(), false);
}

bool PlanStore::is_over() const {
  std::error_code ignored;
  return !ranks_.is_first() && !fs::exists(ranks_.mine(), ignored);
}

void PlanStore::close() {
  if (!file_) return;
  std::error_code ignored;
  if (ranks_.is_first()) {
    const auto ignores = [](auto&&...) {
    };  // the search has ended: what others have found since is kept for the next one
    events_ = {.seen = ignores, .simulated = ignores, .lost = ignores};
    take(ranks_.news(), true);
    ranks_.remove_others();
  } else if (is_empty_) {
    fs::remove(ranks_.mine(), ignored);
  }
}

void PlanStore::take(const StoredPoints& stored, bool is_old) {
  std::string lines;
  for (const LineOfPlan& line : stored.of_plans) {
    if (take_of_plan(line, is_old)) lines += line.text + "\n";
  }
  if (copies_ && !lines.empty()) keep(lines);
  for (const StoredPoint& one : stored.points) take_quick(one, is_old);
}

void PlanStore::take_quick(const StoredPoint& stored, bool is_old) {
  const auto place = places_.find(stored.point.values, stored.files);
  if (!place || quick_.contains(*place)) return;
  if (stored.point.state == PointState::lost) {
    if (!is_old) events_.lost(*place, stored.point.problem);
    return;
  }
  if (copies_) keep(line_of(stored.point, stored.files));
  events_.simulated(*place, quick_.emplace(*place, stored.point).first->second);
}

// Returns whether something is known now that was not.
bool PlanStore::take_of_plan(const LineOfPlan& line, bool is_old) {
  const std::optional<KeptOfPlan> kept = kept_of_line(line);
  if (!kept) return false;
  if (kept->what == KeptOfPlan::What::variant)
    return variants_.try_emplace({kept->files, kept->point.values}, kept->point).second;
  const auto place = places_.find(kept->point.values, kept->files);
  if (!place) return false;
  switch (kept->what) {
    case KeptOfPlan::What::whole:
      return whole_.emplace(*place, kept->point).second;
    case KeptOfPlan::What::too_long:
      given_up_[*place] = std::max(given_up_[*place], kept->seconds);
      return true;
    default:
      break;
  }
  if (is_seen_[*place]) return false;
  if (kept->point.state == PointState::lost) {
    if (!is_old) events_.lost(*place, kept->point.problem);
    return false;
  }
  is_seen_[*place] = true;
  events_.seen(*place, *kept);
  return true;
}

double PlanStore::given_up_after_s(std::size_t place) const {
  const auto found = given_up_.find(place);
  return found == given_up_.end() ? 0 : found->second;
}

void PlanStore::add_seen(const std::string& lines) {
  keep(lines);
  for (std::size_t at = 0, end = 0; (end = lines.find('\n', at)) != std::string::npos; at = end + 1)
    take_of_plan({lines.substr(at, end - at), "what was seen", 1}, false);
}

void PlanStore::add_quick(std::size_t place, const std::string& line) {
  keep(line);
  const StoredPoint stored = point_of_line(line, "a result", static_cast<int>(place));
  events_.simulated(place, quick_.insert_or_assign(place, stored.point).first->second);
}

void PlanStore::add_whole(std::size_t place, SweptPoint point) {
  keep(place, {.what = KeptOfPlan::What::whole, .point = point});
  whole_[place] = std::move(point);
}

void PlanStore::add_given_up(std::size_t place, double seconds) {
  keep(place, {.what = KeptOfPlan::What::too_long, .seconds = seconds});
  given_up_[place] = seconds;
}

void PlanStore::add_variant(const SweepSpace::Values& values, std::size_t place, SweptPoint point) {
  point.values = values;
  const std::string hash = files_of(values, place);
  if (point.state != PointState::lost)
    keep(line_of_plan({.what = KeptOfPlan::What::variant, .point = point, .files = hash}));
  variants_[{hash, values}] = std::move(point);
}

void PlanStore::lose(std::size_t place, const std::string& why, bool is_seen) {
  if (!ranks_.has_several()) return;
  SweptPoint point{.values = values_of(place), .state = PointState::lost, .problem = why};
  if (is_seen) {
    keep(place, {.what = KeptOfPlan::What::seen, .point = std::move(point)});
  } else {
    keep(line_of(point, files()[place]));
  }
}

void PlanStore::keep(std::size_t place, KeptOfPlan kept) {
  kept.point.values = values_of(place);
  kept.files = files()[place];
  keep(line_of_plan(kept));
}

void PlanStore::keep(const std::string& lines) {
  if (!file_) return;
  file_->add(lines);
  is_empty_ = false;
}

}  // namespace tandem
