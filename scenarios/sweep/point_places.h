// The points of a space by their values, whatever file or process tells about them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep_space.h"

namespace tandem {

class PointPlaces {
 public:
  PointPlaces(const SweepSpace& space, const std::vector<SweepSpace::Point>& points);

  // Returns, for each point, the hash of the files that its values name, as it was when this was made.
  const std::vector<std::string>& files() const { return files_; }
  // Returns the place of the point with these values, in any order, and files; nothing if it is none of the space.
  std::optional<std::size_t> find(const SweepSpace::Values& values, const std::string& files) const;

 private:
  std::vector<std::string> files_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace tandem
