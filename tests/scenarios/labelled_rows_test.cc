// Data files: the packaged digits, and the split into training and test rows.
#include "scenarios/scenario/labelled_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

TEST(LabelledRows, TheDigitsAreThere) {
  const LabelledRows digits = read_labelled_rows(find_data("scenarios/data/digits.csv"));
  EXPECT_EQ(digits.rows(), 1797);
  EXPECT_EQ(digits.columns, 64);
  EXPECT_EQ(digits.classes, 10);
  EXPECT_EQ(*std::max_element(digits.values.begin(), digits.values.end()), 1);
  EXPECT_EQ(digits.values[2], 5.0F / 16);
  // Every digit is there about equally often.
  for (int digit = 0; digit < 10; ++digit)
    EXPECT_GT(std::count(digits.labels.begin(), digits.labels.end(), digit), 170);
}

TEST(LabelledRows, EveryFifthRowIsForTesting) {
  const LabelledRows rows = read_labelled_rows(TANDEM_SOURCE_DIR "/tests/scenarios/good/files/rows.csv");
  ASSERT_EQ(rows.rows(), 6);
  EXPECT_EQ(rows.values[4], -1) << "scaled by the largest absolute value";
  const TrainTestSplit split = split_rows(rows);
  EXPECT_EQ(split.train.labels, (std::vector<std::int32_t>{0, 1, 1, 0, 0}));
  EXPECT_EQ(split.test.labels, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(split.test.values, (std::vector<float>{0.5F, 0.5F}));
  EXPECT_EQ(split.train.classes, 3);
}

}  // namespace
}  // namespace tandem
