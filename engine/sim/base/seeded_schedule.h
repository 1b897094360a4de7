// The seeded order of a simulated run: which of several tasks or ends of work goes first where any of them could.
//
// A run with a seed is one random walk over the orders that are possible at equal simulated times. It draws twice:
//
//   where                     among whom                                    what happens
//   Scheduler::yield()        the tasks that could run at this instant,     the chosen task runs to its next yield(),
//                             once all of them have come to a yield()       wait or end
//   Simulation::take_turns()  the operations that ended at this instant,    the callback of the chosen one runs
//                             once SimGrid has reported all of them
//
// A task yields when it starts, after it has waited, before it takes a monitor, and before it issues to a stream.
// Both places draw from the same generator, in an order that only the seed and the program decide, so equal seeds give
// equal runs. They do so with every compiler: the standard fixes the numbers of std::mt19937_64, and the rest is
// integer arithmetic done here, because std::shuffle and the distributions differ between libraries.
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

  // Draws one of 0 ... count - 1, all equally likely. `count` is at least 1; for 1 nothing is drawn.
  std::size_t choose(std::size_t count);

  // Draws an item, and removes it by moving the last item to its place. `items` is not empty.
  template <typename Item>
  Item take_one(std::vector<Item>& items) {
    std::swap(items[choose(items.size())], items.back());
    Item taken = std::move(items.back());
    items.pop_back();
    return taken;
  }

  std::uint64_t seed() const { return seed_; }
  std::uint64_t choices() const { return choices_; }  // how many times it drew

 private:
  std::uint64_t seed_;
  std::uint64_t choices_ = 0;
  std::mt19937_64 random_;
};

}  // namespace tandem::sim
