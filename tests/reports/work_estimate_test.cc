// The time left of jobs of very different sizes, on a clock of the test's own.
#include "reports/base/work_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace tandem {
namespace {

// Runs jobs on some processors: each takes the time of its size. Calls `look(now, end, left)` at every end of a job.
template <typename Look>
void play(const std::vector<double>& sizes, const std::vector<double>& seconds, const std::vector<bool>& runs,
          int processors, const Look& look) {
  const std::vector<std::size_t> order = mixed_order(sizes);
  std::vector<double> ordered;
  for (const std::size_t job : order) ordered.push_back(sizes[job]);
  WorkEstimate work(ordered);
  const auto simulate = [&](auto&& begin, auto&& end) {
    std::vector<std::pair<double, std::size_t>> running;
    std::size_t next = 0;
    double now_s = 0;
    while (next < order.size() || !running.empty()) {
      while (next < order.size() && static_cast<int>(running.size()) < processors) {
        begin(next, now_s);
        running.emplace_back(now_s + seconds[order[next]], next);
        ++next;
      }
      const auto first = std::min_element(running.begin(), running.end());
      now_s = first->first;
      const std::size_t job = first->second;
      running.erase(first);
      end(job, now_s);
    }
    return now_s;
  };
  const double end_s = simulate([](auto...) {}, [](auto...) {});
  simulate([&](std::size_t job, double now_s) { work.begin(job, now_s); },
           [&](std::size_t job, double now_s) {
             work.end(job, now_s, runs[order[job]]);
             look(now_s, end_s, work.left_s(now_s, processors));
           });
}

void expect_right_after_a_tenth(const std::vector<double>& sizes, const std::vector<double>& seconds,
                                const std::vector<bool>& runs) {
  for (const int processors : {1, 4}) {
    play(sizes, seconds, runs, processors, [&](double now_s, double end_s, std::optional<double> left_s) {
      if (now_s < end_s / 10 || now_s > 0.9 * end_s) return;  // the last jobs are what they are
      ASSERT_TRUE(left_s.has_value());
      EXPECT_LT(*left_s, 2 * (end_s - now_s)) << now_s << " of " << end_s << " s, " << processors << " processors";
      EXPECT_GT(*left_s, (end_s - now_s) / 2) << now_s << " of " << end_s << " s, " << processors << " processors";
    });
  }
}

// Sizes from 1 to 4,096, the smallest first, as a sweep over machines has them.
std::vector<double> growing_sizes() {
  std::vector<double> sizes;
  for (double size = 1; size <= 4096; size *= 2) sizes.insert(sizes.end(), 12, size);
  return sizes;
}

TEST(WorkEstimate, IsRightForJobsOfVeryDifferentSizes) {
  const std::vector<double> sizes = growing_sizes();
  std::mt19937 random(1);
  for (const double power : {0.5, 1.0, 1.2}) {
    std::vector<double> seconds;
    for (const double size : sizes) {
      const double luck = 0.8 + 0.4 * (static_cast<double>(random() % 1000) / 1000);
      seconds.push_back(luck * (0.05 + 0.003 * std::pow(size, power)));
    }
    expect_right_after_a_tenth(sizes, seconds, std::vector<bool>(sizes.size(), true));
  }
}

TEST(WorkEstimate, IsRightWhereTheSizeSaysNothing) {
  const std::vector<double> sizes = growing_sizes();
  expect_right_after_a_tenth(sizes, std::vector<double>(sizes.size(), 3), std::vector<bool>(sizes.size(), true));
  expect_right_after_a_tenth(std::vector<double>(50, 1), std::vector<double>(50, 3), std::vector<bool>(50, true));
}

TEST(WorkEstimate, DoesNotTakeRefusedJobsForQuickOnes) {
  std::vector<double> sizes = growing_sizes(), seconds;
  std::vector<bool> runs(sizes.size(), true);
  for (std::size_t job = 0; job < sizes.size(); ++job) {
    if (job % 3 == 0) runs[job] = false;
    if (job % 4 == 0) runs[job] = false, sizes[job] = 0;  // known beforehand
    seconds.push_back(runs[job] ? 0.05 + 0.003 * sizes[job] : 0.001);
  }
  expect_right_after_a_tenth(sizes, seconds, runs);
}

TEST(WorkEstimate, KnowsNothingBeforeAJobHasRun) {
  WorkEstimate work({1, 2, 3});
  EXPECT_FALSE(work.left_s(0).has_value());
  work.begin(0, 0);
  work.end(0, 1, false);
  EXPECT_FALSE(work.left_s(1).has_value());
  work.begin(1, 1);
  work.end(1, 3);
  EXPECT_DOUBLE_EQ(work.left_s(3).value(), 1.5) << "3 s, and every other job is refused";
  work.begin(2, 3);
  EXPECT_DOUBLE_EQ(work.left_s(4).value(), 2) << "it has not been refused";
  EXPECT_DOUBLE_EQ(work.left_s(8).value(), 1) << "it takes longer";
  work.put_back(2);
  EXPECT_DOUBLE_EQ(work.left_s(8).value(), 1.5);
}

// Twenty calls of each size from 8 bytes to 1 GiB, as `tandem collectives` times them.
TEST(WorkEstimate, IsRightForSeriesOfGrowingCalls) {
  constexpr int kCalls = 20;
  std::vector<double> sizes;
  for (double bytes = 8; bytes <= 1024.0 * 1024 * 1024; bytes *= 2) sizes.push_back(bytes);
  const auto call_s = [](double bytes) { return 20e-6 + bytes / 5e9; };
  double end_s = 0, now_s = 0;
  for (const double bytes : sizes) end_s += kCalls * call_s(bytes);
  SeriesEstimate series(sizes, 0);
  std::int64_t done = 0;
  for (const double bytes : sizes) {
    for (int call = 0; call < kCalls; ++call) {
      now_s += call_s(bytes);
      const auto left_s = series.left_s(++done, kCalls * std::ssize(sizes), now_s);
      if (now_s < end_s / 10 || now_s > 0.98 * end_s) continue;
      EXPECT_LT(left_s.value(), 2 * (end_s - now_s)) << bytes;
      EXPECT_GT(left_s.value(), (end_s - now_s) / 2) << bytes;
    }
  }
}

TEST(MixedOrder, HasEveryJobOnceAndAllSizesInEveryBeginning) {
  for (std::size_t count : {0, 1, 2, 3, 7, 40, 1000}) {
    std::vector<double> sizes;
    for (std::size_t i = 0; i < count; ++i) sizes.push_back(static_cast<double>(i));
    std::vector<std::size_t> order = mixed_order(sizes);
    if (count >= 40) {
      double sum = 0;
      const std::size_t eighth = count / 8;
      for (std::size_t i = 0; i < eighth; ++i) sum += sizes[order[i]];
      EXPECT_NEAR(sum / static_cast<double>(eighth), static_cast<double>(count) / 2, static_cast<double>(count) / 8);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(order[i], i);
    EXPECT_EQ(order.size(), count);
  }
}

}  // namespace
}  // namespace tandem
