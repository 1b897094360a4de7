#include "scenarios/plan/ordered_search.h"

#include <algorithm>
#include <limits>

namespace tandem {

void BestValues::add(double value) {
  values_.insert(std::ranges::upper_bound(values_, value), value);
  if (values_.size() > wanted_) values_.pop_back();
}

double BestValues::bar() const {
  return values_.size() < wanted_ ? std::numeric_limits<double>::infinity() : values_.back();
}

OrderedSearch::OrderedSearch(std::vector<double> least, const std::vector<double>& known, std::size_t wanted)
    : least_(std::move(least)), values_(least_.size()), best_(wanted, known), ahead_best_(best_) {}

void OrderedSearch::put(std::size_t index, double value) {
  if (values_[index]) return;
  values_[index] = value;
  if (index < ahead_) ahead_best_.add(value);
  for (; !is_decided() && values_[counted_]; ++counted_) best_.add(*values_[counted_]);
}

bool OrderedSearch::is_wanted(std::size_t index) {
  if (index < ahead_) return !is_decided() && index >= counted_ && least_[index] < best_.bar();
  for (; ahead_ < index; ++ahead_) {
    if (values_[ahead_]) ahead_best_.add(*values_[ahead_]);
  }
  return least_[index] < ahead_best_.bar();
}

std::size_t OrderedSearch::missing() const {
  std::size_t count = 0;
  for (std::size_t i = counted_; i < least_.size() && least_[i] < best_.bar(); ++i) {
    if (!values_[i]) ++count;
  }
  return count;
}

}  // namespace tandem
