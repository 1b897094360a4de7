// However much a document has, its page has at most 1 MB, and says what it lacks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/checks/check.h"
#include "reports/checks/history.h"
#include "reports/checks/paired_check.h"
#include "reports/checks/suite.h"
#include "reports/comparison/compare.h"
#include "reports/pages/page.h"
#include "reports/run/report_json.h"
#include "reports/run/run_details.h"
#include "tests/reports/testing.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMost = 1'000'000;

// Returns the page, which is not too large.
std::string small_page(const Json& document) {
  std::string page = page_of(document, "large");
  EXPECT_LE(page.size(), kMost);
  return page;
}

// Names what the page lacks, and not the page.
bool says(const std::string& page, std::string_view text) {
  return page.find(text) != std::string::npos;
}

// A step in which 80 devices work in short turns and wait for one another.
Timeline long_timeline() {
  constexpr int kDevices = 80, kSteps = 50, kCalls = 100;
  Timeline timeline;
  timeline.engine = "cpu";
  std::int64_t sequence = 0;
  for (int device = 0; device < kDevices; ++device) {
    timeline.devices.push_back({fmt::format("/job:worker/replica:0/task:{}/device:GPU:0", device), 0});
  }
  for (int step = 0; step < kSteps; ++step) {
    const Nanoseconds begin = step * 1'000'000;
    timeline.records.push_back(step_record(0, step, begin, begin + 1'000'000));
    for (int call = 0; call < kCalls; ++call) {
      ++sequence;
      for (int device = 0; device < kDevices; ++device) {
        const Nanoseconds at = begin + call * 10'000;
        const Nanoseconds arrival = at + 2'000 + (device + call) % kDevices * 50;
        timeline.records.push_back(work_record(Category::compute, device, 0, step, at, arrival));
        Record record = collective_record(sequence, device, step, arrival, at + 9'000);
        record.ranks = kDevices;
        timeline.records.push_back(record);
      }
    }
  }
  return timeline;
}

// Collectives of so many sizes, each with its ranks; losses of many steps.
Report large_report(int collectives) {
  Report report = full_report();
  const CollectiveSummary one = report.summary.collectives[0];
  report.summary.collectives.clear();
  for (int i = 0; i < collectives; ++i) {
    CollectiveSummary next = one;
    next.bytes += 4 * i;
    next.waiting_ns = 70;
    for (int rank = 0; rank < 64; ++rank) next.ranks.push_back({.rank = rank, .waiting = rank, .transfer = 150'000});
    report.summary.collectives.push_back(std::move(next));
  }
  for (int rank = 0; rank < 64; ++rank) {
    report.summary.ranks.push_back(
        {.device = fmt::format("/job:worker/task:{}/device:GPU:0", rank), .waiting = rank, .caused = 64 - rank});
  }
  for (int step = 0; step < 50 * collectives; ++step) report.loss.push_back(1.0 / (step + 3));
  for (int note = 0; note < collectives; ++note) report.notes.push_back(fmt::format("caveat {}", note));
  return report;
}

TEST(PageSize, OfARunIsBounded) {
  Json document = report_to_json(large_report(600));
  const std::string plain = small_page(document);
  EXPECT_TRUE(says(plain, "... and 551 more, for which the page has no room"));
  EXPECT_TRUE(says(plain, "points is drawn."));
  document["details"] = run_details_to_json(run_details(long_timeline(), 0, Pace::in_step));
  const std::string page = small_page(document);
  EXPECT_TRUE(says(page, "Timeline of the median step"));
}

TEST(PageSize, TheDetailsOfAnyRunLeaveRoomForItsReport) {
  Json document = report_to_json(full_report());
  document["details"] = run_details_to_json(run_details(long_timeline(), 0, Pace::in_step));
  const std::string page = small_page(document);
  EXPECT_FALSE(says(page, "There is no room for this on the page."));
}

TEST(PageSize, OfACheckIsBounded) {
  const Report baseline = large_report(3'000);
  Report report = baseline;
  for (CollectiveSummary& one : report.summary.collectives) one.time_ns += 10;
  report.deterministic = true;
  Report simulated = baseline;
  simulated.deterministic = true;
  const CheckResult result = check(report, simulated, {});
  EXPECT_GT(result.differences.size(), 2'500U);
  const std::string page = small_page(check_to_json(result, report, simulated));
  EXPECT_TRUE(says(page, "more rows, for which the page has no room"));
}

TEST(PageSize, OfAComparisonIsBounded) {
  std::vector<Comparison> comparisons;
  for (int i = 0; i < 30; ++i) comparisons.push_back(compare(large_report(50), large_report(50)));
  Json document = comparisons_to_json(comparisons);
  const Json details = run_details_to_json(run_details(long_timeline(), 0, Pace::in_step));
  for (const char* which : {"measured", "predicted"}) document["comparisons"].back()[which]["details"] = details;
  const std::string page = small_page(document);
  EXPECT_TRUE(says(page, "Timelines of the median steps"));
}

TEST(PageSize, OfASuiteIsBounded) {
  Json document = document_of("suite");
  document["summary"] = {{"ok", 5000}};
  const Json one = {{"file", "gate/scenario.yaml"},
                    {"scenario", "scenario"},
                    {"mode", "exact"},
                    {"outcome", "ok"},
                    {"exit_code", 0},
                    {"reason", std::string(900, 'r')},
                    {"step_time_ns", 1030},
                    {"reference_ns", 1000},
                    {"change", 0.03}};
  document["scenarios"] = Json::array();
  for (int i = 0; i < 5000; ++i) {
    document["scenarios"].push_back(one);
    if (i < 20) document["scenarios"].back()["check"] = report_to_json(large_report(50));
  }
  const std::string page = small_page(document);
  EXPECT_TRUE(says(page, "Checks of 5000 scenarios"));
  EXPECT_TRUE(says(page, "more rows, for which the page has no room"));
  document["scenarios"].erase(document["scenarios"].begin() + 20, document["scenarios"].end());
  EXPECT_TRUE(says(small_page(document), "Checks of 20 scenarios"));
}

TEST(PageSize, OfPairsOfLaunchesIsBounded) {
  std::vector<Launch> launches;
  for (int i = 0; i < 16; ++i) launches.push_back({.is_new = i % 2 == 1, .report = large_report(1)});
  auto result = look_at(log_ratios_of(launches), 0.03);
  ASSERT_TRUE(result);
  for (int i = 0; i < 20'000; ++i) result->figures.push_back({.name = fmt::format("all_reduce {} B x 8", i)});
  EXPECT_TRUE(
      says(small_page(paired_check_to_json(*result, launches, 7)), "more rows, for which the page has no room"));
}

TEST(PageSize, OfAHistoryIsBoundedWhateverItsSeriesAndCommitsAre) {
  HistoryLaunch launch = history_launch(full_report(), std::string(3'000, 'c'), "2026-11-22T12:00:00Z");
  std::vector<HistoryLaunch> launches;
  for (int i = 0; i < 600; ++i) {
    launch.scenario_hash = std::to_string(i / 2);
    launches.push_back(launch);
  }
  const std::string page = small_page(history_to_json(series_of(launches, 0.03), 0.03));
  EXPECT_TRUE(says(page, "260 more series are not shown."));
  for (HistoryLaunch& one : launches) one.scenario_hash = "1";
  const std::string of_one = small_page(history_to_json(series_of(launches, 0.03), 0.03));
  EXPECT_FALSE(says(of_one, "There is no room for this on the page."));
}

TEST(PageSize, OfASweepOfStrategiesWithLongNamesIsBounded) {
  Json document = document_of("sweep");
  document.update(
      {{"scenario", "which"}, {"engine", "sim"}, {"fields", {"strategy.name"}}, {"crossings", Json::array()}});
  document["points"] = Json::array();
  for (int i = 0; i < 3'000; ++i) {
    const std::string strategy = fmt::format("{}{}", std::string(500, 's'), i % 100);
    document["points"].push_back({{"values", {{"strategy.name", strategy}}},
                                  {"state", "done"},
                                  {"strategy", strategy},
                                  {"devices", i % 7 + 1},
                                  {"throughput", {{"value", i + 1.0}, {"unit", "examples/s"}}},
                                  {"step_time_ns", 2000},
                                  {"per_step_ns", per_step_to_json({.compute = 2000})},
                                  {"limit", "compute"}});
  }
  document["pareto_front"] = {0, 2999};
  document["best"] = 2999;
  EXPECT_TRUE(says(small_page(document), "77 more series are not drawn."));
}

TEST(PageSize, IsBoundedWithAnyText) {
  const std::string text(3 * kMost, '<');
  Report report = full_report();
  report.scenario = report.strategy = report.notes[0] = report.settings["threads"] = text;
  report.metrics[text] = 1;
  EXPECT_LE(page_of(report_to_json(report), "large").size(), kMost);
  const CheckResult result = check(report, full_report(), {});
  EXPECT_LE(page_of(check_to_json(result, report, full_report()), "large").size(), kMost);
}

}  // namespace
}  // namespace tandem
