#include "reports/validation/group_bands.h"

#include <gtest/gtest.h>

#include "reports/base/size_bands.h"

namespace tandem {
namespace {

using Rows = std::vector<PredictedRow>;
constexpr PredictionRows kOneNode{PredictionGroup::one_node, {}};
constexpr PredictionRows kSharded{PredictionGroup::fully_sharded, {}};
constexpr PredictionRows kServers{PredictionGroup::parameter_server, {}};

void add(Rows& rows, const PredictionRows& of, const std::string& site, std::initializer_list<double> ratios) {
  for (const double ratio : ratios) rows.push_back({.of = of, .site = site, .family = "a machine", .ratio = ratio});
}

// A site for each ratio.
Rows sites_of(const PredictionRows& of, std::initializer_list<double> ratios) {
  Rows rows;
  for (const double ratio : ratios) add(rows, of, "site " + std::to_string(rows.size()), {ratio});
  return rows;
}

// From 0.9 to 1.38, as far apart as 49 sites are.
Rows many_sites(const PredictionRows& of) {
  Rows rows;
  for (int i = 0; i < 49; ++i) add(rows, of, "site " + std::to_string(i), {0.9 + 0.01 * i});
  return rows;
}

// By the finite-sample rule, 0.8 * 50 / 49 = 0.816 of the rows: 40 of 49, and 4.5 are left out on either side.
TEST(GroupBands, HoldMoreThanTheirLevelOfKnownRows) {
  const GroupErrors band = band_of(kOneNode, many_sites(kOneNode));
  EXPECT_EQ(band.rows, 49);
  EXPECT_EQ(band.sites, 49);
  EXPECT_FALSE(band.is_widened);
  ASSERT_EQ(band.intervals.size(), 2U);
  EXPECT_EQ(band.intervals[0].level, 0.8);
  EXPECT_NEAR(band.intervals[0].low, -0.06, 1e-9);
  EXPECT_NEAR(band.intervals[0].high, 0.34, 1e-9);
  EXPECT_EQ(band.intervals[1].level, 0.95);
  EXPECT_NEAR(band.intervals[1].low, -0.1, 1e-9) << "0.969 leave out less than a row";
  EXPECT_NEAR(band.intervals[1].high, 0.38, 1e-9);
}

TEST(GroupBands, OfTooFewClustersHaveTheLevelOfTheirRange) {
  const GroupErrors band = band_of(kOneNode, sites_of(kOneNode, {0.9, 1, 1.1, 1.2, 1.3, 1.4}));
  ASSERT_EQ(band.intervals.size(), 2U);
  EXPECT_EQ(band.intervals[1].level, 6 / 7.0) << "a seventh site is as likely beyond them as any of the six";
  EXPECT_NEAR(band.intervals[1].low, -0.1, 1e-9);
  EXPECT_NEAR(band.intervals[1].high, 0.4, 1e-9);
  EXPECT_FALSE(band.is_widened);
}

TEST(GroupBands, OfFewSitesAreAtLeastThoseOfAllTogether) {
  Rows rows = many_sites(kOneNode);
  const std::vector<ErrorInterval> all = band_of(kOneNode, rows).intervals;
  add(rows, kSharded, "site 1", {1.01, 1.02});
  add(rows, kServers, "site 1", {9});
  GroupErrors band = band_of(kSharded, rows);
  EXPECT_TRUE(band.is_widened);
  ASSERT_EQ(band.intervals.size(), 2U);
  EXPECT_EQ(band.intervals[1].level, 0.95);
  EXPECT_NEAR(band.intervals[1].low, all[1].low, 0.011);
  EXPECT_NEAR(band.intervals[1].high, all[1].high, 0.011) << "without that of servers";
  add(rows, kSharded, "site 2", {2});
  band = band_of(kSharded, rows);
  EXPECT_NEAR(band.intervals[1].high, 1, 1e-9);
}

TEST(GroupBands, OfOneSiteAloneClaimNoMoreThanOneOfTwo) {
  const GroupErrors band = band_of(kOneNode, sites_of(kOneNode, {1.2}));
  ASSERT_EQ(band.intervals.size(), 1U);
  EXPECT_EQ(band.intervals[0].level, 0.5);
  EXPECT_FALSE(band.is_widened) << "there are no others";
}

TEST(GroupBands, OfOneSiteWithManyMachinesReachFromItsLeastRowToItsGreatest) {
  Rows rows;
  for (int i = 0; i < 40; ++i)
    rows.push_back({.of = kServers, .site = "a", .family = "machine " + std::to_string(i % 8), .ratio = 1 + 0.1 * i});
  const GroupErrors band = band_of(kServers, rows);
  ASSERT_EQ(band.intervals.size(), 1U);
  EXPECT_EQ(band.intervals[0].low, 0);
  EXPECT_NEAR(band.intervals[0].high, 3.9, 1e-9);
}

TEST(GroupBands, OfServersStandAlone) {
  Rows rows = many_sites(kOneNode);
  add(rows, kServers, "site 1", {3, 4});
  const GroupErrors band = band_of(kServers, rows);
  ASSERT_EQ(band.intervals.size(), 1U);
  EXPECT_EQ(band.intervals[0], (ErrorInterval{.level = 0.5, .low = 2, .high = 3}));
}

// A site with a hundred rows counts ten times as much as one with a single row.
TEST(GroupBands, WeighSitesByTheRootOfTheirRows) {
  Rows rows = sites_of(kOneNode, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  for (int i = 0; i < 100; ++i) add(rows, kOneNode, "a large site", {2});
  EXPECT_EQ(band_of(kOneNode, rows).intervals[0].high, 1) << "10 of 38, on the upper side";
  rows.resize(29);
  EXPECT_EQ(band_of(kOneNode, rows).intervals[0].high, 0) << "1 of 29";
}

TEST(GroupBands, AreJudgedByRowsOfSitesThatTheyDoNotRestOn) {
  Rows rows = many_sites(kOneNode);
  EXPECT_NEAR(*share_of_new_sites(kOneNode, 0, rows), 0.8, 0.05);
  EXPECT_NEAR(*share_of_new_sites(kOneNode, 1, rows), 0.95, 0.02);
  EXPECT_FALSE(share_of_new_sites(kSharded, 0, rows));
  add(rows, kServers, "site 1", {3});
  EXPECT_FALSE(share_of_new_sites(kServers, 0, rows)) << "no other site has any";
}

TEST(GroupBands, LeaveOutWhatIsReportedApart) {
  TrainingPoint point{.source = "a", .compared_as = "replicas", .devices = 8, .measured = 100, .predicted = 80};
  TrainingPoint apart = point;
  apart.apart = "one process for all GPUs";
  const Rows rows = rows_for_bands({.training = {point, apart}});
  ASSERT_EQ(rows.size(), 1);
  EXPECT_NEAR(rows[0].ratio, 0.8, 1e-12) << "of times: the measured step is a fifth shorter";
  EXPECT_NEAR(rows[0].error, -0.2, 1e-12);
  EXPECT_EQ(rows[0].of, kOneNode);
}

TEST(GroupBands, OfCollectivesAreBySize) {
  ValidationPoint point{.site = "a", .bytes = 1 << 20, .measured_us = 30, .predicted_us = 20};
  ValidationPoint staged = point, over_efa = point, of_one_process = point;
  staged.group = PredictionGroup::collectives_pcie;
  staged.apart = "no P2P";
  over_efa.group = PredictionGroup::collectives_other_networks;
  over_efa.apart = "network: efa";
  of_one_process.apart = "several devices a process";
  const Rows rows = rows_for_bands({.points = {point, staged, over_efa, of_one_process}});
  ASSERT_EQ(rows.size(), 3) << "what a group is about does not count apart";
  EXPECT_EQ(name_of(rows[0].of), "collectives over NVLink, .. 1 MiB");
  EXPECT_EQ(rows[0].ratio, 1.5);
  EXPECT_EQ(name_of(rows[1].of), "collectives over PCIe, .. 1 MiB");
  EXPECT_EQ(name_of(rows[2].of), "collectives over other networks, .. 1 MiB");
}

TEST(GroupBands, OfMemoryCountRowsWhoseTimesDoNot) {
  const TrainingPoint point{.source = "a",
                            .compared_as = "sharded",
                            .devices = 8,
                            .measured = 100,
                            .predicted = 80,
                            .apart = "power limited",
                            .peak = PublishedPeak{.bytes = 200},
                            .predicted_peak = 160};
  const Rows rows = rows_for_bands({.training = {point}});
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(name_of(rows[0].of), "memory of a device");
  EXPECT_NEAR(rows[0].ratio, 1.25, 1e-12);
}

TEST(ErrorInterval, IsSaidInWords) {
  EXPECT_EQ(interval_text({.low = -0.124, .high = 0.351}), "-12..+35 %");
  EXPECT_EQ(level_text(0.95), "19 of 20");
  EXPECT_EQ(level_text(0.8), "4 of 5");
  EXPECT_EQ(level_text(6 / 7.0), "6 of 7");
  EXPECT_EQ(level_text(0.5), "1 of 2");
  EXPECT_EQ(level_text(0.667), "2 of 3");
  const ErrorInterval errors = ErrorInterval{.low = -0.5, .high = 1}.of_predicted();
  EXPECT_EQ(errors.low, -0.5) << "predicted half of what was measured";
  EXPECT_EQ(errors.high, 1);
  EXPECT_TRUE(errors.contains(1));
  EXPECT_FALSE(errors.contains(1.01));
}

}  // namespace
}  // namespace tandem
