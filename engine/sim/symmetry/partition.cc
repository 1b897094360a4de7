#include "engine/sim/symmetry/partition.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace tandem::sim::symmetry {
namespace {

// Numbers its arguments in the order in which they first occur. Compares contents, not hashes.
class Numbering {
 public:
  std::uint32_t of(const std::u32string& what) {
    const auto [known, is_new] = numbers_.try_emplace(what, size_);
    if (is_new) ++size_;
    return known->second;
  }
  // The same for a single number, which is the case of most flows in a non-blocking network.
  std::uint32_t of(std::uint32_t alone) {
    if (alone >= numbers_of_alone_.size()) numbers_of_alone_.resize(alone + 1, kNone);
    std::uint32_t& number = numbers_of_alone_[alone];
    if (number == kNone) number = size_++;
    return number;
  }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
  std::unordered_map<std::u32string, std::uint32_t> numbers_;
  std::vector<std::uint32_t> numbers_of_alone_;
  std::uint32_t size_ = 0;
};

// Gives each flow (link) a new class, determined by its old class and the classes of the links (flows) in its list, in
// any order. Returns the number of classes.
std::size_t refine(const Crossings& lists, std::span<const std::uint32_t> others, std::vector<std::uint32_t>& classes) {
  Numbering numbers;
  std::u32string seen;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (lists.of(i).empty()) {
      classes[i] = numbers.of(classes[i]);
      continue;
    }
    seen.assign(1, classes[i]);
    for (const std::uint32_t other : lists.of(i)) seen.push_back(others[other]);
    std::sort(seen.begin() + 1, seen.end());
    classes[i] = numbers.of(seen);
  }
  return numbers.size();
}

// Returns for each link the flows that cross it.
Crossings reversed(const Crossings& crossings, std::size_t links) {
  Crossings reversed;
  reversed.starts.assign(links + 1, 0);
  for (const std::uint32_t link : crossings.links) ++reversed.starts[link + 1];
  for (std::size_t link = 0; link < links; ++link) reversed.starts[link + 1] += reversed.starts[link];
  reversed.links.resize(crossings.links.size());
  std::vector<std::size_t> next(reversed.starts.begin(), reversed.starts.end() - 1);
  for (std::size_t flow = 0; flow < crossings.flows(); ++flow) {
    for (const std::uint32_t link : crossings.of(flow)) reversed.links[next[link]++] = static_cast<std::uint32_t>(flow);
  }
  return reversed;
}

}  // namespace

Partition equitable_partition(const Crossings& crossings, std::span<const std::uint32_t> flow_colours,
                              std::span<const std::uint32_t> link_colours) {
  Partition partition{{flow_colours.begin(), flow_colours.end()}, {link_colours.begin(), link_colours.end()}};
  const Crossings flows_of_links = reversed(crossings, link_colours.size());
  for (std::size_t classes = 0;;) {
    const std::size_t links = refine(flows_of_links, partition.flow_class, partition.link_class);
    const std::size_t flows = refine(crossings, partition.link_class, partition.flow_class);
    if (flows + links == classes) return partition;
    classes = flows + links;
  }
}

}  // namespace tandem::sim::symmetry
