// Equal groups of workers that are alike: each has as many members of a class, and what one group does, the others do.
#pragma once

#include <optional>
#include <span>

namespace tandem::sim::symmetry {

// The groups into which the members of a class fall. Members count from 0, and so do images.
struct Images {
  int count = 1;
  int members = 1;             // of a class in each image
  bool are_neighbours = true;  // false: the members of an image are `count` apart

  int of(int member) const { return are_neighbours ? member / members : member % count; }
  int place_of(int member) const { return are_neighbours ? member % members : member / count; }  // in its image
  // Returns the member that does in `image` what `member` does in its own.
  int twin(int member, int image) const {
    return are_neighbours ? image * members + member % members : member / count * count + image;
  }
  bool operator==(const Images&) const = default;
};

// Returns the images of which one has these members of a class of `size`, in rising order: neighbours, or members at
// equal distances. Returns nothing where they are neither.
std::optional<Images> images_of(std::span<const int> members, int size);

}  // namespace tandem::sim::symmetry
