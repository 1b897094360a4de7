// Published trainings with TensorFlow's parameter servers, whose remote calls cost what networks state by default.
// Nothing of that is fitted to the rows.
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

// Workers that are equal stay in phase, and wait for each other's calls where published ones met by chance.
TEST(ServerTraining, RowsFollowFromThatOfOneWorker) {
  const auto tables = tables_by(Protocol::first_row);
  ASSERT_EQ(tables.size(), 5u);
  std::vector<double> errors;
  for (const auto& table : tables) {
    for (const TrainingPoint& point : table) {
      errors.push_back(point.error());
      EXPECT_LT(std::abs(point.error()), 0.25) << point.model << " on " << point.devices;
    }
  }
  EXPECT_LT(median_error(errors), 0.1);
}

// Rows that the servers limit depend on nothing else; those that workers limit have the errors of small convolutions.
TEST(ServerTraining, SaturatedRowsFollowFromCostsOfCallsAlone) {
  std::vector<double> errors;
  for (const auto& table : tables_by(Protocol::links)) {
    for (const TrainingPoint& point : table) {
      if (point.measured < kSaturated * point.linear) errors.push_back(point.error());
    }
  }
  ASSERT_GE(errors.size(), 14u);
  EXPECT_LT(median_error(errors), 0.15);
  EXPECT_LT(std::abs(*std::ranges::max_element(errors, {}, [](double error) { return std::abs(error); })), 0.3);
}

// Another site, with four devices a worker and synchronous updates. Without the costs of calls, the rows of VGG-16,
// which one server limits, would be several times too fast.
TEST(ServerTraining, SynchronousServersOfAnotherSiteAreNear) {
  const Validation validation =
      validate_folder(TANDEM_SOURCE_DIR "/tests/validation/synchronous_servers", Protocol::links);
  int rows = 0;
  for (const TrainingPoint& point : validation.training) {
    if (point.devices == 1) continue;
    ++rows;
    EXPECT_EQ(point.nodes, point.devices / 4);
    EXPECT_LT(std::abs(point.error()), point.model == "vgg16" ? 0.25 : 0.5) << point.model << " on " << point.devices;
  }
  EXPECT_EQ(rows, 4);
}

}  // namespace
}  // namespace tandem::validation
