#include "reports/run/run_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

RunDetails read_back(const RunDetails& details) {
  const nlohmann::ordered_json document = run_details_to_json(details);
  Reading reading(document, "details");
  RunDetails read = run_details_from_json(reading.root());
  reading.finish();
  return read;
}

Timeline three_steps() {
  return two_device_timeline({
      step_record(0, 0, 0, 500),  // warm-up
      step_record(0, 1, 500, 600), work_record(Category::compute, 0, 0, 1, 500, 560), step_record(0, 2, 600, 720),
      work_record(Category::compute, 0, 0, 2, 610, 650), work_record(Category::compute, 1, 0, 2, 610, 690),
      collective_record(7, 0, 2, 650, 710), collective_record(7, 1, 2, 690, 710), step_record(0, 3, 720, 920),
      work_record(Category::compute, 0, 0, 3, 700, 740),  // begins before its step
  });
}

TEST(RunDetails, HaveTheStepOfMedianLengthWithTimesFromItsBegin) {
  const StepPicture picture = run_details(three_steps(), 1, Pace::in_step).median_step;
  EXPECT_EQ(picture.step, 2);
  EXPECT_EQ(picture.length, 120);
  ASSERT_EQ(picture.lanes.size(), 4u) << "two devices with a stream of compute and one of communication";
  // The work of the next step that overlaps this one is drawn as far as it does.
  ASSERT_EQ(picture.lanes[0].bars.size(), 2u);
  EXPECT_EQ(picture.lanes[0].bars[0].start, 10);
  EXPECT_EQ(picture.lanes[0].bars[0].end, 50);
  EXPECT_EQ(picture.lanes[0].bars[1].end, 120);
  ASSERT_EQ(picture.critical_stretches.size(), 2u);
  EXPECT_EQ(picture.critical_stretches[0].lane, 2) << "the slow device";
  EXPECT_EQ(picture.critical_stretches[1].lane, 1) << "the first of those that ended together";
  EXPECT_EQ(picture.critical_stretches[1].start, 90) << "from the last arrival on";
  EXPECT_FALSE(picture.lanes[1].bars[0].arrived_last);
  EXPECT_TRUE(picture.lanes[3].bars[0].arrived_last);
}

TEST(RunDetails, SayWhoWaited) {
  const RunDetails details = run_details(three_steps(), 1, Pace::in_step);
  EXPECT_THAT(details.steps, testing::ElementsAre(1, 2, 3));
  ASSERT_EQ(details.waits.size(), 2u);
  EXPECT_THAT(details.waits[0].waited_by_step, testing::ElementsAre(0, 40, 0));
  EXPECT_EQ(details.waits[1].last_arrivals, 1);
}

TEST(RunDetails, HaveTheMostUsedLinksFirst) {
  Timeline timeline = three_steps();
  timeline.links = {{.from = "gpu0",
                     .to = "switch",
                     .from_kind = "gpu",
                     .to_kind = "nvswitch",
                     .kind = "nvlink",
                     .bytes = 46,
                     .bytes_per_s = 1e9},
                    {.from = "gpu1",
                     .to = "switch",
                     .from_kind = "gpu",
                     .to_kind = "nvswitch",
                     .kind = "nvlink",
                     .bytes = 92,
                     .bytes_per_s = 0.5e9}};
  const LinkPicture links = run_details(timeline, 1, Pace::in_step).links;
  EXPECT_EQ(links.time, 920);
  ASSERT_EQ(links.links.size(), 2u);
  EXPECT_EQ(links.links[0].from, "gpu1");
  EXPECT_DOUBLE_EQ(links.use_of(links.links[0]), 0.2);
  EXPECT_DOUBLE_EQ(links.use_of(links.links[1]), 0.05);
}

TEST(RunDetails, AreTheSameAfterJson) {
  Timeline timeline = three_steps();
  timeline.links = {
      {.from = "a", .to = "b", .from_kind = "gpu", .to_kind = "nic", .kind = "pcie", .bytes = 3, .bytes_per_s = 5}};
  RunDetails details = run_details(timeline, 1, Pace::in_step);
  EXPECT_EQ(run_details_to_json(read_back(details)), run_details_to_json(details));
  EXPECT_FALSE(read_back(details).memory);
  details.memory =
      MemoryCurve{.device = "GPU:0",
                  .step = 2,
                  .length = 90,
                  .need = {.parameters = 5, .activations = 3, .cached = 2, .moment = "the forward pass, a"},
                  .points = {{0, 0, 0, ""}, {4, 3, 0, "the forward pass, a"}, {9, 0, 0, ""}}};
  EXPECT_EQ(read_back(details).memory, details.memory);
}

TEST(RunDetails, OfALongStepAreDrawnCoarser) {
  std::vector<Record> records = {step_record(0, 0, 0, 1'000'000)};
  for (int i = 0; i < 20'000; ++i) {
    const Category category = i % 10'000 == 0 ? Category::update : Category::compute;
    records.push_back(work_record(category, 0, 0, 0, i * 50, i * 50 + 40));
  }
  const StepPicture picture = run_details(two_device_timeline(std::move(records)), 0, Pace::in_step).median_step;
  ASSERT_EQ(picture.lanes.size(), 1u);
  const auto& bars = picture.lanes[0].bars;
  EXPECT_LE(bars.size(), static_cast<std::size_t>(kMostBars));
  EXPECT_EQ(bars.front().start, 0);
  EXPECT_EQ(bars.back().end, 999'990);
  EXPECT_EQ(
      std::count_if(bars.begin(), bars.end(), [](const StepBar& bar) { return bar.category == Category::update; }), 2)
      << "work of another kind keeps its bar";
}

TEST(RunDetails, OfShortWorkInTurnsAreDrawnAsTheKindThatTakesMost) {
  std::vector<Record> records = {step_record(0, 0, 0, 1'000'000)};
  for (int i = 0; i < 20'000; ++i) {
    const Category category = i % 2 == 0 ? Category::update : Category::compute;
    records.push_back(work_record(category, 0, 0, 0, i * 50, i * 50 + (i % 2 == 0 ? 10 : 40)));
  }
  const StepPicture picture = run_details(two_device_timeline(std::move(records)), 0, Pace::in_step).median_step;
  const auto& bars = picture.lanes.at(0).bars;
  EXPECT_LE(bars.size(), static_cast<std::size_t>(kMostBars));
  EXPECT_GT(bars.size(), 400U) << "about as fine as can be seen";
  EXPECT_EQ(bars.front().category, Category::compute);
  EXPECT_EQ(bars.front().name, "mostly: compute");
}

TEST(RunDetails, ThatAreWrongAreRefusedWithTheirPlace) {
  nlohmann::ordered_json document = run_details_to_json(run_details(three_steps(), 1, Pace::in_step));
  document["median_step"]["lanes"][0]["bars"][0][2] = 9;
  document["waiting"].erase("steps");
  const std::string text = document.dump();
  const JsonOrigin origin("run.json", text);
  const nlohmann::ordered_json read = origin.parse();
  Reading reading(read, origin);
  run_details_from_json(reading.root());
  std::vector<Diagnostic> problems;
  try {
    reading.finish();
  } catch (const InputError& error) {
    problems = error.diagnostics();
  }
  ASSERT_EQ(problems.size(), 2u);
  std::sort(problems.begin(), problems.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  EXPECT_EQ(problems[0].path, "median_step.lanes[0].bars[0]");
  EXPECT_TRUE(text.substr(static_cast<std::size_t>(problems[0].column) - 1).starts_with("["));
  EXPECT_EQ(problems[1].path, "waiting.steps");
  EXPECT_TRUE(text.substr(0, static_cast<std::size_t>(problems[1].column) - 1).ends_with("\"waiting\":"));
}

}  // namespace
}  // namespace tandem
