#include "engine/sim/symmetry/images.h"

namespace tandem::sim::symmetry {

std::optional<Images> images_of(std::span<const int> members, int size) {
  const auto count = static_cast<int>(members.size());
  if (count == 0 || size % count != 0) return std::nullopt;
  const int first = members.front();
  const auto are_apart = [&](int distance) {
    for (int i = 0; i < count; ++i) {
      if (members[static_cast<std::size_t>(i)] != first + i * distance) return false;
    }
    return true;
  };
  const int images = size / count;
  if (first % count == 0 && are_apart(1)) return Images{.count = images, .members = count};
  if (first < images && are_apart(images)) {
    return Images{.count = images, .members = count, .are_neighbours = false};
  }
  return std::nullopt;
}

}  // namespace tandem::sim::symmetry
