#include "scenarios/faults/course_machines.h"

#include <algorithm>
#include <utility>

namespace tandem {

CourseMachines::CourseMachines(int workers, int spares, bool uses_free_ones, bool come_by_name)
    : places_(static_cast<std::size_t>(workers), {.is_up = !come_by_name}),
      lost_(come_by_name ? workers : 0),
      spares_(spares),
      uses_free_ones_(uses_free_ones),
      come_by_name_(come_by_name) {}

CourseMachines::Place* CourseMachines::place_of(const std::string& node) {
  const auto place = std::ranges::find_if(places_, [&](const Place& one) { return one.is_up && one.node == node; });
  return place == places_.end() ? nullptr : &*place;
}

bool CourseMachines::take(Place& place) {
  place.node.clear();
  if (!std::exchange(place.is_up, false)) return false;
  ++lost_;
  return true;
}

bool CourseMachines::give(Place& place, const std::string& node) {
  if (std::exchange(place.is_up, true)) return false;
  place.node = node;
  --lost_;
  return true;
}

bool CourseMachines::lose(int worker) {
  return take(places_[static_cast<std::size_t>(worker)]);
}

// A machine whose place another one has taken is free.
bool CourseMachines::come_back(int worker) {
  if (give(places_[static_cast<std::size_t>(worker)], "")) return true;
  ++spares_;
  return false;
}

bool CourseMachines::node_comes(const std::string& node) {
  if (place_of(node) != nullptr || free_nodes_.contains(node)) return false;
  const auto empty = std::ranges::find(places_, false, &Place::is_up);
  if (empty != places_.end()) return give(*empty, node);
  free_nodes_.insert(node);
  return false;
}

bool CourseMachines::node_goes(const std::string& node) {
  Place* place = place_of(node);
  if (place == nullptr && (free_nodes_.erase(node) > 0 || come_by_name_)) return false;
  if (place == nullptr) place = place_of("");
  return place != nullptr && take(*place);
}

void CourseMachines::fill_places() {
  if (!uses_free_ones_) return;
  for (Place& place : places_) {
    if (place.is_up) continue;
    if (!free_nodes_.empty()) {
      give(place, free_nodes_.extract(free_nodes_.begin()).value());
    } else if (spares_ > 0) {
      --spares_;
      give(place, "");
    }
  }
}

}  // namespace tandem
