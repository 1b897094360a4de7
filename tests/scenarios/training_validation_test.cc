// Replays of training tables: what is read, fitted and predicted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/validation/training.h"
#include "topologies/base/error.h"

namespace tandem::validation {
namespace {

using testing::HasSubstr;

std::string training_file(const std::string& rows, const std::string& more = "") {
  return R"({"strategy": "mirrored", "unit": "examples/s", "topology": {"node": "dgx1-v100"}, "tables": [{)" + more +
         R"("workload": {"kind": "layers", "model": "resnet50", "dtype": "f16", "batch": 64}, "rows": [)" + rows +
         "]}]}";
}

TEST(TrainingFile, IsToldFromOneOfCollectives) {
  EXPECT_TRUE(is_training_file(training_file("")));
  EXPECT_FALSE(is_training_file(R"({"collective": "all_reduce", "strategy": "x", "tables": []})"));
}

TEST(TrainingFile, HasTheBatchOfOneDevice) {
  const auto tables = parse_training(
      training_file(R"({"devices": 1, "throughput": 1270}, {"devices": 16, "nodes": 2, "throughput": 18000})"),
      "made up");
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].workload.batch, 64);
  EXPECT_EQ(tables[0].strategy, "mirrored");
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0].throughput, 1270);
  EXPECT_EQ(tables[0].rows[1].machine.family(), "dgx1-v100, 2 nodes");
}

TEST(TrainingFile, SaysWhatItLacks) {
  const auto lacks = [](const std::string& text) { return parse_training(text, "made up").at(0).lacks; };
  EXPECT_EQ(lacks(R"({"strategy": "mirrored", "tables": [{"topology": {"lacks": "the GPU"}}]})"), "the GPU");
  EXPECT_EQ(lacks(R"({"strategy": "mirrored", "tables": [{"rows": []}]})"), "a 'topology'");
  EXPECT_EQ(lacks(R"({"strategy": "mirrored", "topology": {"node": "dgx2"}, "tables": [{"rows": []}]})"),
            "a 'workload'");
}

TEST(TrainingFile, ReportsWhatIsWrong) {
  const auto problem = [](const std::string& text) -> std::string {
    try {
      parse_training(text, "t.json");
    } catch (const InputError& error) {
      return error.diagnostics().at(0).text();
    }
    return "";
  };
  EXPECT_THAT(problem(training_file(R"({"devices": 1, "throughput": -5})")),
              HasSubstr("tables[0].rows[0].throughput: must be greater than 0, found -5"));
  EXPECT_THAT(problem(training_file(R"({"devices": 16, "throughput": 5})")),
              HasSubstr("topology: 16 devices on one node of 'dgx1-v100' with 8 GPUs"));
  EXPECT_THAT(problem(training_file(R"({"throughput": 5})")), HasSubstr("tables[0].rows[0]: missing key 'devices'"));
  EXPECT_THAT(problem(training_file(R"({"devices": 1, "throughput": 5})", R"("strategy": "mirored", )")),
              HasSubstr("unknown strategy 'mirored'"));
  EXPECT_THAT(problem(training_file("")), HasSubstr("tables[0]: holds no rows"));
}

// The device is fitted to the first row, so that the factor between rows is the model's and the level is the table's.
TEST(TrainingReplay, FitsTheFirstRow) {
  const std::string rows = R"({"devices": 1, "throughput": 500}, {"devices": 4, "throughput": 1900})";
  const auto tables = parse_training(training_file(rows), "made up");
  const TrainingReplay links = replay_training("made up", tables, false);
  ASSERT_EQ(links.points.size(), 2u);
  EXPECT_EQ(links.points[0].basis, "device figures");
  EXPECT_EQ(links.points[0].linear, 0);
  const TrainingReplay fitted = replay_training("made up", tables, true);
  ASSERT_EQ(fitted.points.size(), 1u);
  EXPECT_EQ(fitted.points[0].devices, 4);
  EXPECT_EQ(fitted.points[0].basis, "fitted on one device");
  EXPECT_EQ(fitted.points[0].linear, 2000);
  EXPECT_GT(fitted.points[0].predicted, 1500);
  EXPECT_LE(fitted.points[0].predicted, 2000 * 1.001);
}

TEST(TrainingReplay, LeavesOutTablesThatCannotBeFitted) {
  const auto why = [](const std::string& rows) {
    return replay_training("made up", parse_training(training_file(rows), "made up"), true).left_out.at(0).why;
  };
  EXPECT_EQ(why(R"({"devices": 2, "throughput": 5})"), "has no row of one device");
  EXPECT_EQ(why(R"({"devices": 1, "throughput": 5})"), "has only one row");
}

}  // namespace
}  // namespace tandem::validation
