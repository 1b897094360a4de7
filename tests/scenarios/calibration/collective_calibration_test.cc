// Measured tables become the measured times of a topology, with what they are worth.
#include "scenarios/fitting/collective_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

CollectiveTable table(std::string operation, int devices,
                      const std::vector<std::pair<std::int64_t, double>>& times_us) {
  CollectiveTable table;
  table.operation = std::move(operation);
  table.devices = devices;
  for (const auto& [bytes, time_us] : times_us) {
    table.rows.emplace_back();
    table.rows.back().bytes = bytes;
    table.rows.back().out_of_place_us = time_us;
  }
  table.file = "a.txt";
  table.line = 7;
  return table;
}

CollectiveCalibration calibrated(const std::vector<CollectiveTable>& tables, const std::string& machine = "dgx-a100") {
  return calibrate_collectives(tables, load_catalog_node(machine));
}

TEST(CollectiveCalibration, TakesOverTimesAndTheirRange) {
  const auto result = calibrated({table("all_gather", 8, {{1024, 10}, {4096, 13}, {2048, 11}})});
  ASSERT_THAT(result.samples, SizeIs(3));
  EXPECT_EQ(result.samples[1].operation, "all_gather");
  EXPECT_EQ(result.samples[1].devices, 8);
  EXPECT_EQ(result.samples[1].nodes, 1);
  EXPECT_EQ(result.samples[1].bytes, 2048);
  EXPECT_DOUBLE_EQ(result.samples[1].time_s, 11e-6);
  ASSERT_THAT(result.collectives, SizeIs(1));
  const CalibratedCollective& collective = result.collectives[0];
  EXPECT_EQ(collective.least_bytes, 1024);
  EXPECT_EQ(collective.most_bytes, 4096);
  EXPECT_EQ(collective.repaired, 0);
  EXPECT_EQ(collective.relative_spread, 0);
  EXPECT_THAT(collective.files, ElementsAre("a.txt"));
  EXPECT_THAT(result.contradictions, IsEmpty());
  EXPECT_THAT(result.notes, IsEmpty());
}

// 2048 between 1024 and 4096 would take 10 + 3 / 3 us; 1 MiB between 4096 and 2 MiB about half of the way from 13
// to 26.
TEST(CollectiveCalibration, SaysHowWellEachSizeIsPredictedByTheOthers) {
  const auto result = calibrated({table("all_gather", 8, {{1024, 10}, {2048, 12}, {4096, 13}, {65536, 20}})});
  const auto& bands = result.collectives.at(0).bands;
  ASSERT_THAT(bands, SizeIs(2));
  EXPECT_EQ(bands[0].up_to_bytes, 32 * 1024);
  EXPECT_EQ(bands[0].points, 3);
  EXPECT_EQ(bands[0].fit_median, 0);
  EXPECT_EQ(bands[0].left_out, 2);
  const double of_2048 = 1 - 11.0 / 12, of_4096 = 1 - (12 + 8 * 2048.0 / (65536 - 2048)) / 13;
  EXPECT_NEAR(bands[0].left_out_median, (of_2048 + of_4096) / 2, 1e-12);
  EXPECT_NEAR(bands[0].left_out_p95, of_2048, 1e-12);
  EXPECT_EQ(bands[1].points, 1);
  EXPECT_EQ(bands[1].left_out, 0) << "the largest size has none above";
}

// The links say half of what is measured, and have its shape: with them no size is missed.
TEST(CollectiveCalibration, TheLinksHelpBetweenTheSizes) {
  const auto curve = [](double bytes) { return 1e-6 * std::pow(bytes, 0.7); };
  CollectiveTable measured = table("all_gather", 8, {{1024, 0}, {4096, 0}, {16384, 0}});
  for (CollectiveRow& row : measured.rows) row.out_of_place_us = 2 * curve(static_cast<double>(row.bytes)) * 1e6;
  const LinkTimes links = [&](CollectiveKind kind, int devices, int nodes, const std::vector<double>& bytes) {
    EXPECT_EQ(kind, CollectiveKind::all_gather);
    EXPECT_EQ(devices, 8);
    EXPECT_EQ(nodes, 1);
    std::vector<double> times;
    for (const double size : bytes) times.push_back(curve(size));
    return times;
  };
  const auto alone = calibrate_collectives({measured}, load_catalog_node("dgx-a100")).collectives.at(0).bands.at(0);
  const auto helped =
      calibrate_collectives({measured}, load_catalog_node("dgx-a100"), links).collectives.at(0).bands.at(0);
  EXPECT_FALSE(alone.links_median);
  EXPECT_NEAR(*helped.links_median, 0.5, 1e-12);
  EXPECT_NEAR(1 - helped.left_out_median, std::sqrt(1 - alone.left_out_median), 1e-12) << "the geometric mean";
}

TEST(CollectiveCalibration, RepeatedMeasurementsGiveAMedianAndASpread) {
  const auto result = calibrated({table("broadcast", 2, {{1024, 10}, {4096, 30}}), table("broadcast", 2, {{1024, 14}}),
                                  table("broadcast", 2, {{1024, 11}})});
  ASSERT_THAT(result.samples, SizeIs(2));
  EXPECT_DOUBLE_EQ(result.samples[0].time_s, 11e-6);
  EXPECT_NEAR(result.samples[0].relative_spread, 1.0 / 11, 1e-12);
  EXPECT_EQ(result.samples[1].relative_spread, 0);
  EXPECT_NEAR(result.collectives[0].relative_spread, 1.0 / 11, 1e-12);
}

TEST(CollectiveCalibration, ATimeAboveThatOfALargerSizeIsRepaired) {
  const auto result = calibrated({table("broadcast", 2, {{8, 68}, {16, 25}, {32, 26}})});
  EXPECT_EQ(result.collectives[0].repaired, 1);
  EXPECT_DOUBLE_EQ(result.samples[0].time_s, 68e-6) << "the topology holds what was measured";
}

TEST(CollectiveCalibration, DevicesFillMachinesOneAfterTheOther) {
  const auto result = calibrated({table("all_reduce", 16, {{1024, 40}}), table("all_reduce", 4, {{1024, 12}})});
  ASSERT_THAT(result.samples, SizeIs(2));
  EXPECT_EQ(result.samples[0].nodes, 1);
  EXPECT_EQ(result.samples[1].nodes, 2);
  CollectiveTable spread_out = table("all_reduce", 4, {{1024, 50}});
  spread_out.nodes = 4;
  EXPECT_EQ(calibrated({spread_out}).samples.at(0).nodes, 4);
}

TEST(CollectiveCalibration, FloatsAreReducedAsModelsDo) {
  CollectiveTable bytes = table("all_reduce", 8, {{1024, 20}}), floats = table("all_reduce", 8, {{1024, 12}});
  bytes.dtype = "int8";
  const auto result = calibrated({bytes, floats});
  ASSERT_THAT(result.samples, SizeIs(1));
  EXPECT_DOUBLE_EQ(result.samples[0].time_s, 12e-6);
  EXPECT_THAT(result.notes,
              ElementsAre("all_reduce on 8 devices: 1 table of 8-bit integers left out, floats were measured as well"));
  EXPECT_DOUBLE_EQ(calibrated({bytes}).samples.at(0).time_s, 20e-6) << "better than nothing";
}

TEST(CollectiveCalibration, ReportsTimesThatTheLinksCannotCarry) {
  const auto result = calibrated({table("all_gather", 8, {{1024, 10}, {1 << 30, 2500}, {2LL << 30, 4000}})});
  EXPECT_THAT(
      result.contradictions,
      ElementsAre(
          "all_gather on 8 devices: 2 of 3 sizes are faster than the links; 2 GiB would need 469.8 GB/s, and the "
          "links of gpu0 carry 300.0 GB/s"));
  EXPECT_THAT(result.samples, SizeIs(3)) << "reported, not swallowed";
}

TEST(CollectiveCalibration, RefusesTablesThatDoNotSayWhatTheyAre) {
  const auto refuses = [](const CollectiveTable& wrong, const std::string& message) {
    EXPECT_THAT([&] { calibrated({wrong}); }, ThrowsMessage<InputError>(HasSubstr("a.txt:7: " + message)));
  };
  refuses(table("hypercube", 8, {{8, 1}}), "a table of 'hypercube', which is no collective of Tandem");
  refuses(table("all_reduce", 0, {{8, 1}}),
          "a table that does not say on how many devices it was measured, at least 2");
  CollectiveTable crowded = table("all_reduce", 16, {{8, 1}});
  crowded.nodes = 1;
  refuses(crowded, "16 devices on 1 machine of topology 'dgx-a100', which has 8 GPUs in each");
  crowded.nodes = 32;
  refuses(crowded, "16 devices on 32 machines");
}

}  // namespace
}  // namespace tandem
