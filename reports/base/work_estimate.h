// How long it takes to finish a list of jobs of known relative sizes, from those that have ended.
//
// A job takes a + b x size seconds; a and b >= 0 are fitted to the jobs that ran. Jobs that were refused without having
// run say nothing about that, but a like share of the others is expected to be refused, too.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tandem {

class WorkEstimate {
 public:
  // Sizes in any unit, at least 0, by job, in the order in which they will begin. A job of size 0 is not expected to
  // run.
  explicit WorkEstimate(std::vector<double> sizes);

  void begin(std::size_t job, double now_s);
  void put_back(std::size_t job) { states_[job] = State::waits; }  // it begins again later
  void end(std::size_t job, double now_s, bool ran = true);
  // Returns how long the rest takes if `at_once` jobs run side by side. Nothing before a job has run.
  std::optional<double> left_s(double now_s, int at_once = 1) const;

 private:
  enum class State : unsigned char { waits, runs, ended };
  struct Line {
    double a = 0, b = 0;
    double at(double size) const { return a + b * size; }
  };
  Line fitted() const;

  std::vector<double> sizes_;
  std::vector<State> states_;
  std::vector<double> began_s_;
  // The number of jobs that ran, and sums over them for the fit, weighted by 1 / seconds.
  int ran_ = 0, refused_ = 0;
  double weights_ = 0, sizes_sum_ = 0, squares_ = 0, seconds_ = 0, products_ = 0;
};

// The same for series of equally many calls, one series after the other, whose calls have the series' size.
class SeriesEstimate {
 public:
  // The first series begins now.
  SeriesEstimate(const std::vector<double>& sizes, double now_s) : series_count_(sizes.size()), work_(sizes) {
    if (series_count_ > 0) work_.begin(0, now_s);
  }
  // `done` of `calls` have ended by now; reported in order of time.
  std::optional<double> left_s(std::int64_t done, std::int64_t calls, double now_s);

 private:
  std::size_t series_count_;
  WorkEstimate work_;
  std::size_t series_ = 0;  // the first that has not ended
};

// Returns an order for jobs in which every beginning of it has jobs of all sizes, so that the time left is known early:
// the numbers 0, 1, ... of the sizes.
std::vector<std::size_t> mixed_order(const std::vector<double>& sizes);

}  // namespace tandem
