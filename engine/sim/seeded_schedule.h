// Who goes first where several could: the seeded order of a simulated run.
//
// A run with a seed is a random walk over its schedules. Wherever one task may be overtaken by another (when it starts,
// has waited, takes a monitor, or issues to a stream) all tasks that could run at this instant gather, and one of them,
// each as likely as the others, runs to its next such place; Scheduler::yield() is that place. Work that ends at one
// instant, on whatever stream, takes effect in an order chosen in the same way (Simulation). Both draw from one
// generator in the order in which they come to it, which nothing but the seed and the program decides, so a seed stands
// for one run. Its numbers are those of std::mt19937_64, which the standard fixes, and of integer arithmetic done here,
// since std::shuffle and the distributions differ between libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace tandem::sim {

class SeededSchedule {
 public:
  explicit SeededSchedule(std::uint64_t seed) : seed_(seed), random_(seed) {}

  // One of 0 ... count - 1, equally likely. `count` is at least 1; for 1 nothing is drawn.
  std::size_t choose(std::size_t count);

  // Takes one out of a list that is not empty; the last one moves to its place.
  template <typename Item>
  Item take_one(std::vector<Item>& items) {
    std::swap(items[choose(items.size())], items.back());
    Item taken = std::move(items.back());
    items.pop_back();
    return taken;
  }

  std::uint64_t seed() const { return seed_; }
  std::uint64_t choices() const { return choices_; }  // between two or more, so far

 private:
  std::uint64_t seed_;
  std::uint64_t choices_ = 0;
  std::mt19937_64 random_;
};

}  // namespace tandem::sim
