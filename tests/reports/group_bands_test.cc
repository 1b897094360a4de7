#include "reports/validation/group_bands.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using Errors = std::vector<SourcedError>;

void add(Errors& errors, PredictionGroup group, const std::string& source, std::initializer_list<double> values) {
  for (const double value : values) errors.push_back({group, source, value});
}

Errors four_sources() {
  Errors errors;
  for (const char* source : {"a", "b", "c", "d"}) add(errors, PredictionGroup::one_node, source, {0.1, 0.2});
  return errors;
}

TEST(GroupBands, AreThePercentileOfAGroupThatManySourcesHave) {
  Errors errors = four_sources();
  add(errors, PredictionGroup::fully_sharded, "a", {0.9});
  const GroupErrors band = band_of(PredictionGroup::one_node, errors);
  EXPECT_EQ(band.band, 0.2);
  EXPECT_EQ(band.rows, 8);
  EXPECT_EQ(band.sources, 4);
  EXPECT_FALSE(band.is_of_all);
}

TEST(GroupBands, OfFewSourcesAreAtLeastThoseOfAll) {
  Errors errors = four_sources();
  add(errors, PredictionGroup::fully_sharded, "a", {0.01});
  add(errors, PredictionGroup::parameter_server, "e", {3});
  GroupErrors band = band_of(PredictionGroup::fully_sharded, errors);
  EXPECT_EQ(band.band, 0.2) << "without those of servers";
  EXPECT_TRUE(band.is_of_all);
  EXPECT_EQ(band_of(PredictionGroup::parameter_server, errors).band, 3);
  add(errors, PredictionGroup::fully_sharded, "b", {0.6});
  band = band_of(PredictionGroup::fully_sharded, errors);
  EXPECT_EQ(band.band, 0.6);
  EXPECT_FALSE(band.is_of_all);
}

TEST(GroupBands, AreJudgedByRowsOfSourcesThatTheyDoNotRestOn) {
  Errors errors = four_sources();
  EXPECT_EQ(share_of_new_sources(PredictionGroup::one_node, errors), 1.0);
  add(errors, PredictionGroup::one_node, "e", {0.1, 0.3});
  EXPECT_EQ(share_of_new_sources(PredictionGroup::one_node, errors), 0.9) << "one of ten is beyond what others had";
  EXPECT_FALSE(share_of_new_sources(PredictionGroup::one_device, errors));
  add(errors, PredictionGroup::central_storage, "a", {0.1});
  EXPECT_FALSE(share_of_new_sources(PredictionGroup::central_storage, errors)) << "no other source has any";
}

TEST(GroupBands, LeaveOutWhatIsReportedApart) {
  TrainingPoint point{.source = "a", .compared_as = "replicas", .devices = 8, .measured = 100, .predicted = 80};
  TrainingPoint apart = point;
  apart.apart = "one process for all GPUs";
  const Errors errors = errors_for_bands({point, apart});
  ASSERT_EQ(errors.size(), 1);
  EXPECT_NEAR(errors[0].error, 0.2, 1e-12);
  EXPECT_EQ(errors[0].group, PredictionGroup::one_node);
}

}  // namespace
}  // namespace tandem
