#include "scenarios/faults/course_machines.h"

#include <algorithm>

namespace tandem {

CourseMachines::CourseMachines(int workers, int spares, bool uses_free_ones, bool come_by_name)
    : places_(static_cast<std::size_t>(workers), {.is_up = !come_by_name}),
      spares_(spares),
      uses_free_ones_(uses_free_ones),
      come_by_name_(come_by_name) {}

int CourseMachines::lost() const {
  return static_cast<int>(std::ranges::count(places_, false, &Place::is_up));
}

CourseMachines::Place* CourseMachines::place_of(const std::string& node) {
  const auto place = std::ranges::find(places_, node, &Place::node);
  return place == places_.end() ? nullptr : &*place;
}

bool CourseMachines::lose(int worker) {
  Place& place = places_[static_cast<std::size_t>(worker)];
  place.node.clear();
  return std::exchange(place.is_up, false);
}

// A machine whose place another one has taken is free.
bool CourseMachines::come_back(int worker) {
  Place& place = places_[static_cast<std::size_t>(worker)];
  if (place.is_up) ++spares_;
  return !std::exchange(place.is_up, true);
}

bool CourseMachines::node_comes(const std::string& node) {
  const auto empty = std::ranges::find(places_, false, &Place::is_up);
  if (empty == places_.end()) {
    free_nodes_.insert(node);
    return false;
  }
  *empty = {.is_up = true, .node = node};
  return true;
}

bool CourseMachines::node_goes(const std::string& node) {
  Place* place = place_of(node);
  if (place == nullptr && (free_nodes_.erase(node) > 0 || come_by_name_)) return false;
  if (place == nullptr) place = place_of("");
  if (place == nullptr || !place->is_up) return false;
  *place = {.is_up = false, .node = "(none)"};
  return true;
}

void CourseMachines::fill_places() {
  if (!uses_free_ones_) return;
  for (Place& place : places_) {
    if (place.is_up) continue;
    if (!free_nodes_.empty()) {
      place = {.is_up = true, .node = free_nodes_.extract(free_nodes_.begin()).value()};
    } else if (spares_ > 0) {
      --spares_;
      place = {.is_up = true};
    }
  }
}

}  // namespace tandem
