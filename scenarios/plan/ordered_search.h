// Decides which points of a list are simulated: in the order of their bounds, while these are below what as many points
// as are wanted take. What counts is what one process would simulate that does one point after the other. Others may be
// simulated ahead of that, in whatever order and by whomever: they count once all before them are known.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tandem {

// The best ones of some values; less is better.
class BestValues {
 public:
  BestValues(std::size_t wanted, const std::vector<double>& values) : wanted_(wanted) {
    for (const double value : values) add(value);
  }
  void add(double value);
  // Returns what a further value must be below to be among them: infinity while there are fewer than wanted.
  double bar() const;

 private:
  std::size_t wanted_;
  std::vector<double> values_{};  // ascending
};

class OrderedSearch {
 public:
  // `least`: the bounds of the points, ascending. `known`: values of other points, which count from the beginning.
  // `wanted`: 1 or more.
  OrderedSearch(std::vector<double> least, const std::vector<double>& known, std::size_t wanted);

  // Takes the value of a point; infinity for one that has none. Only the first one of each point counts.
  void put(std::size_t index, double value);
  bool is_known(std::size_t index) const { return values_[index].has_value(); }
  // Whether the point may count, as far as those before it are known.
  bool is_wanted(std::size_t index);
  // Returns how many points count so far: the first ones.
  std::size_t counted() const { return counted_; }
  // Whether no further point counts, so that the search is over.
  bool is_decided() const { return counted_ == least_.size() || least_[counted_] >= best_.bar(); }
  // Returns how many points that may count have no value yet.
  std::size_t missing() const;

 private:
  std::vector<double> least_;
  std::vector<std::optional<double>> values_;
  BestValues best_;  // of those that count
  std::size_t counted_ = 0;
  // The same for these and those known among the first `ahead_`, which is as far as is_wanted() was asked.
  BestValues ahead_best_;
  std::size_t ahead_ = 0;
};

}  // namespace tandem
