#include "reports/run/step_path.h"
#include "reports/timeline/waiting.h"

namespace tandem {

std::optional<CriticalPath> critical_path_of(const Timeline& timeline, const std::vector<int>& steps, Pace pace) {
  const TakenStep taken = median_step_of(timeline, steps, pace);
  const StepPath path = step_path(timeline, taken.time);
  if (path.parts.empty()) return std::nullopt;
  const auto time_of = [&path](Category category) {
    const auto found = path.by_category.find(category);
    return found == path.by_category.end() ? 0 : found->second;
  };
  const auto device_of = [&timeline](const PathPart& part) {
    return timeline.devices.at(static_cast<std::size_t>(part.record->device)).name;
  };
  return CriticalPath{.step = taken.step,
                      .compute = time_of(Category::compute),
                      .update = time_of(Category::update),
                      .input = time_of(Category::input),
                      .communication = time_of(Category::communication),
                      .other = time_of(Category::other),
                      .idle = path.idle,
                      .begins_on = device_of(path.parts.front()),
                      .ends_on = device_of(path.parts.back())};
}

}  // namespace tandem
