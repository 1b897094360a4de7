#include "reports/comparison/run_comparison.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "reports/pages/page.h"
#include "reports/stored_text.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

RunComparison slower_by_a_half() {
  RunComparison runs{.baseline_name = "a.json", .name = "b.json", .baseline = full_report(), .now = full_report()};
  StepTime& step = runs.now.summary.step_time;
  step.mean = step.median = 3'000'000;
  return runs;
}

TEST(RunComparison, ShowsEveryFigureOfBothRuns) {
  const std::string text = run_comparison_text(slower_by_a_half());
  EXPECT_THAT(text, HasSubstr("baseline: a.json: "));
  EXPECT_THAT(text, HasSubstr("now: b.json: "));
  EXPECT_THAT(compared_rows(slower_by_a_half()).front(),
              testing::ElementsAre("step time", "2.000 ms", "3.000 ms", "+50.0 %"));
}

TEST(RunComparison, LeavesOutPartsThatARunDoesNotKnow) {
  RunComparison runs = slower_by_a_half();
  EXPECT_THAT(run_comparison_text(runs), HasSubstr("  compute "));
  runs.now.records = RecordLevel::steps;
  EXPECT_THAT(run_comparison_text(runs), Not(HasSubstr("  compute ")));
}

TEST(RunComparison, SaysWhatTheRunsDidAndInWhatTheirJobsDiffer) {
  RunComparison runs = slower_by_a_half();
  runs.baseline.counts = WorkCounts{{"copies of 64 B", 37}};
  runs.now.counts = WorkCounts{{"copies of 64 B", 74}};
  runs.now.strategy = "central_storage";
  runs.now.scenario_hash = "other";
  runs.scenario_changes = {"scenario changed: strategy.name mirrored -> central_storage"};
  const std::vector<std::string> remarks = comparison_remarks(runs);
  EXPECT_THAT(remarks, Contains("copies of 64 B: 1 -> 2 per step"));
  EXPECT_THAT(remarks, Contains("scenario changed: strategy.name mirrored -> central_storage"));
  EXPECT_THAT(remarks, Contains("the strategy is 'central_storage', in the baseline 'mirrored'"));
  runs.now.counts->clear();
  runs.now.steps += 1;
  EXPECT_THAT(comparison_remarks(runs), Not(Contains(HasSubstr("copies of")))) << "totals over other numbers of steps";
}

TEST(RunComparison, IsTheSameFromItsDocument) {
  RunComparison runs = slower_by_a_half();
  runs.now.scenario_hash = "other";
  runs.scenario_changes = {"scenario changed: steps 10 -> 20"};
  const nlohmann::ordered_json document = run_comparison_to_json(runs);
  EXPECT_EQ(document["change"], 0.5);
  EXPECT_EQ(run_comparison_to_json(run_comparison_from_json(document, "result")), document);
  EXPECT_EQ(stored_text(document, "result", false), run_comparison_text(runs));
  const std::string page = page_of(document, "result");
  for (const char* part : {"What changed the step time", "Both runs", "steps 10 -&gt; 20", "a.json"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

}  // namespace
}  // namespace tandem
