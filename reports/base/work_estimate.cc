#include "reports/base/work_estimate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

namespace tandem {
namespace {

constexpr double kLeast_s = 1e-4;  // shorter jobs weigh as much as these

}  // namespace

WorkEstimate::WorkEstimate(std::vector<double> sizes)
    : sizes_(std::move(sizes)), states_(sizes_.size(), State::waits), began_s_(sizes_.size()) {}

void WorkEstimate::begin(std::size_t job, double now_s) {
  states_[job] = State::runs;
  began_s_[job] = now_s;
}

void WorkEstimate::end(std::size_t job, double now_s, bool ran) {
  if (states_[job] == State::ended) return;
  const double seconds = states_[job] == State::runs ? now_s - began_s_[job] : 0;
  states_[job] = State::ended;
  if (!ran) {
    if (sizes_[job] > 0) ++refused_;
    return;
  }
  ++ran_;
  const double size = sizes_[job], weight = 1 / std::max(seconds, kLeast_s);
  weights_ += weight;
  sizes_sum_ += weight * size;
  squares_ += weight * size * size;
  seconds_ += weight * seconds;
  products_ += weight * size * seconds;
}

// Least squares; where one of both would be negative, the other alone.
WorkEstimate::Line WorkEstimate::fitted() const {
  const double spread = weights_ * squares_ - sizes_sum_ * sizes_sum_;
  if (spread > 1e-9 * weights_ * squares_) {
    const double b = (weights_ * products_ - sizes_sum_ * seconds_) / spread;
    const double a = (seconds_ - b * sizes_sum_) / weights_;
    if (a >= 0 && b >= 0) return {a, b};
    if (b >= 0) return {0, products_ / squares_};
    return {seconds_ / weights_, 0};
  }
  // All have one size: the time is taken to grow with it.
  return squares_ > 0 ? Line{0, products_ / squares_} : Line{seconds_ / weights_, 0};
}

std::optional<double> WorkEstimate::left_s(double now_s, int at_once) const {
  if (ran_ == 0) return std::nullopt;
  const Line line = fitted();
  const double share = static_cast<double>(ran_) / (ran_ + refused_);
  // From now on, each processor is busy until then; waiting jobs begin on the one that is free first.
  std::priority_queue<double, std::vector<double>, std::greater<>> free_s;
  double last_s = 0;
  const auto add = [&](double end_s) {
    free_s.push(end_s);
    last_s = std::max(last_s, end_s);
  };
  for (std::size_t job = 0; job < sizes_.size(); ++job) {
    if (states_[job] != State::runs) continue;
    const double usual_s = sizes_[job] > 0 ? line.at(sizes_[job]) : 0, passed_s = now_s - began_s_[job];
    // What takes longer than it should is expected to go on for half of what it has exceeded that by.
    add(passed_s < usual_s ? usual_s - passed_s : (passed_s - usual_s) / 2);
  }
  while (static_cast<int>(free_s.size()) < std::max(1, at_once)) free_s.push(0);
  for (std::size_t job = 0; job < sizes_.size(); ++job) {
    if (states_[job] != State::waits || sizes_[job] <= 0) continue;
    const double begin_s = free_s.top();
    free_s.pop();
    add(begin_s + share * line.at(sizes_[job]));
  }
  return last_s;
}

std::optional<double> SeriesEstimate::left_s(std::int64_t done, std::int64_t calls, double now_s) {
  if (series_count_ == 0 || calls <= 0) return std::nullopt;
  const double each = static_cast<double>(calls) / static_cast<double>(series_count_);
  while (series_ < series_count_ && static_cast<double>(done) >= each * static_cast<double>(series_ + 1)) {
    work_.end(series_++, now_s);
    if (series_ < series_count_) work_.begin(series_, now_s);
  }
  return work_.left_s(now_s);
}

std::vector<std::size_t> mixed_order(const std::vector<double>& sizes) {
  const std::size_t count = sizes.size();
  std::vector<std::size_t> by_size(count);
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  // Steps of the golden section through a circle fill it evenly.
  constexpr double kGolden = 0.6180339887498949;
  auto step = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(kGolden * static_cast<double>(count))));
  while (count > 1 && std::gcd(step, count) != 1) ++step;
  std::vector<std::size_t> order;
  order.reserve(count);
  for (std::size_t i = 0; i < count; ++i) order.push_back(by_size[i * step % count]);
  return order;
}

}  // namespace tandem
