// How fast this machine works now, and how far that is from another pace.
#include "scenarios/calibration/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(MachinePace, IsMeasuredOnAsManyCoresAsThereAre) {
  const MachinePace alone = measure_pace("cpu", 1), both = measure_pace("cpu", 2);
  EXPECT_GT(alone.product_s, 0);
  EXPECT_EQ(alone.exchange_s, 0) << "there is nobody to exchange with";
  EXPECT_GT(both.product_s, 0);
}

TEST(MachinePace, IsKeptAmongTheConditionsOfATopology) {
  Topology topology("machine");
  EXPECT_FALSE(pace_of(topology));
  topology.set_measured_with({{"date", "2026-11-26"}});
  set_pace(topology, {.product_s = 1.5e-4, .exchange_s = 2.5e-5});
  EXPECT_EQ(topology.measured_with().at("date"), "2026-11-26");
  ASSERT_TRUE(pace_of(topology));
  EXPECT_DOUBLE_EQ(pace_of(topology)->product_s, 1.5e-4);
  EXPECT_DOUBLE_EQ(pace_of(topology)->exchange_s, 2.5e-5);
}

TEST(MachinePace, WordsOfSomebodyElseAreNone) {
  Topology topology("machine");
  topology.set_measured_with({{"pace of products", "brisk"}});
  EXPECT_FALSE(pace_of(topology));
}

TEST(MachinePace, MayDifferByWhatIsUsual) {
  const MachinePace usual{.product_s = 100e-6, .exchange_s = 40e-6};
  EXPECT_EQ(distance_between(usual, usual), 0);
  EXPECT_LT(distance_between(usual, {.product_s = 109e-6, .exchange_s = 54e-6}), 1);
  EXPECT_GT(distance_between(usual, {.product_s = 115e-6, .exchange_s = 40e-6}), 1);
  EXPECT_GT(distance_between(usual, {.product_s = 85e-6, .exchange_s = 40e-6}), 1) << "faster is another pace, too";
  EXPECT_GT(distance_between(usual, {.product_s = 100e-6, .exchange_s = 70e-6}), 1);
  EXPECT_LT(distance_between(usual, {.product_s = 100e-6, .exchange_s = 0}), 1) << "not measured";
}

TEST(MachinePace, ChangesAreSaidInWords) {
  EXPECT_EQ(change_text({.product_s = 100e-6, .exchange_s = 40e-6}, {.product_s = 115e-6, .exchange_s = 30e-6}),
            "products take 15 % longer, exchanges between cores take 25 % less");
}

}  // namespace
}  // namespace tandem
