// Published trainings with TensorFlow's parameter servers, whose costs the file states: RPCs of a tensor, and the rate
// of gRPC. Nothing of them is fitted to the rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "scenarios/validation/validate.h"

namespace tandem::validation {
namespace {

constexpr double kSaturated = 0.9;  // of the throughput of linear scaling

// The rows of each table of the folder, without that of one worker.
std::vector<std::vector<TrainingPoint>> tables_by(Protocol protocol) {
  const Validation validation = validate_folder(TANDEM_SOURCE_DIR "/tests/validation/servers", protocol);
  std::vector<std::vector<TrainingPoint>> tables;
  int devices = 99;
  for (const TrainingPoint& point : validation.training) {
    if (point.devices <= devices) tables.emplace_back();
    devices = point.devices;
    if (devices > 1) tables.back().push_back(point);
  }
  return tables;
}

double median_error(const std::vector<double>& errors) {
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  std::ranges::sort(sizes);
  return sizes.at(sizes.size() / 2);
}

// Returns the fewest workers that the servers slow down; one more than all where they slow down none.
int knee(const std::vector<TrainingPoint>& table, double TrainingPoint::*throughput) {
  for (const TrainingPoint& point : table) {
    if (point.*throughput < kSaturated * point.linear) return point.devices;
  }
  return table.back().devices + 1;
}

TEST(ServerTraining, SaturatesWhereThePublishedServersDoWithTheWorkerFitted) {
  const auto tables = tables_by(Protocol::first_row);
  ASSERT_EQ(tables.size(), 5u);
  std::vector<double> errors;
  for (const auto& table : tables) {
    for (const TrainingPoint& point : table) errors.push_back(point.error());
    EXPECT_NEAR(knee(table, &TrainingPoint::predicted), knee(table, &TrainingPoint::measured), 1)
        << table.front().model << " from " << table.front().measured;
  }
  EXPECT_LT(median_error(errors), 0.08);
}

// Rows that the servers limit depend on nothing else; those that workers limit have the errors of small convolutions.
TEST(ServerTraining, SaturatedRowsFollowFromStatedCostsAlone) {
  std::vector<double> errors;
  for (const auto& table : tables_by(Protocol::links)) {
    for (const TrainingPoint& point : table) {
      if (point.measured < kSaturated * point.linear) errors.push_back(point.error());
    }
  }
  ASSERT_GE(errors.size(), 14u);
  EXPECT_LT(median_error(errors), 0.12);
  EXPECT_LT(std::abs(*std::ranges::max_element(errors, {}, [](double error) { return std::abs(error); })), 0.3);
}

}  // namespace
}  // namespace tandem::validation
