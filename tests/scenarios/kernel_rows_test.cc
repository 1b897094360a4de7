// What predictions of single kernels are worth: published times beside those from the figures of the device, with the
// constants that were fitted to them (engine/sim/costs/kernel_constants.h). docs/workloads.md has these errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/scenarios/kernel_times.h"

namespace tandem {
namespace {

using MedianPercents = std::map<std::string, int>;

// Returns the median error for each GPU, over kernels that took at least so long.
template <typename Time>
MedianPercents medians_of(const std::string& file, double least_s, Time time) {
  std::map<std::string, std::vector<double>> errors;
  std::map<std::string, KernelTimes> gpus;
  for (const KernelRow& row : kernel_rows(file)) {
    if (row.measured_s < least_s) continue;
    const auto [times, is_new] = gpus.try_emplace(row.gpu, kernel_machine(row.gpu));
    errors[row.gpu].push_back(std::abs(time(times->second, row) / row.measured_s - 1));
  }
  MedianPercents medians;
  for (auto& [gpu, all] : errors) {
    std::sort(all.begin(), all.end());
    medians[gpu] = static_cast<int>(std::lround(100 * all.at(all.size() / 2)));
  }
  return medians;
}

TEST(KernelRows, ProductsAreWithinTheStatedErrors) {
  const auto time = [](const KernelTimes& times, const KernelRow& row) {
    return times.product_s(row.sizes, kernel_type(row.gpu));
  };
  EXPECT_EQ(
      medians_of("gemm.csv", 0, time),
      (MedianPercents{{"a100", 14}, {"h100", 9}, {"h100 fp8", 27}, {"b200", 8}, {"b200 fp8", 43}, {"b200 nvfp4", 33}}));
  EXPECT_EQ(
      medians_of("gemm.csv", 1e-4, time),
      (MedianPercents{{"a100", 5}, {"h100", 7}, {"h100 fp8", 11}, {"b200", 8}, {"b200 fp8", 11}, {"b200 nvfp4", 15}}));
}

TEST(KernelRows, AttentionIsWithinTheStatedErrors) {
  const auto time = [](const KernelTimes& times, const KernelRow& row) { return times.attention_s(row.sizes); };
  EXPECT_EQ(medians_of("attention.csv", 1e-4, time), (MedianPercents{{"a100", 18}, {"h100", 13}, {"b200", 22}}));
}

}  // namespace
}  // namespace tandem
