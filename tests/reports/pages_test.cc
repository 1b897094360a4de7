#include "reports/pages/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "reports/base/json_fields.h"
#include "reports/checks/check.h"
#include "reports/comparison/compare.h"
#include "reports/pages/assets.h"
#include "reports/pages/axis.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/run/report_json.h"
#include "reports/run/run_details.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using pages::Axis;
using pages::Unit;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

Json run_document() {
  Json document = report_to_json(full_report());
  const Timeline timeline = two_device_timeline({
      step_record(0, 0, 0, 100),
      work_record(Category::compute, 0, 0, 0, 0, 60),
      work_record(Category::compute, 1, 0, 0, 0, 70),
      collective_record(1, 0, 0, 60, 95),
      collective_record(1, 1, 0, 70, 95),
  });
  document["details"] = run_details_to_json(run_details(timeline, 0, Pace::in_step));
  return document;
}

TEST(Markup, TextCannotBecomeAnElement) {
  EXPECT_EQ(pages::escaped("a<b> & \"c\" 'd'\x01"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\\x01");
  EXPECT_EQ(pages::coordinate(12.04), "12");
  EXPECT_EQ(pages::coordinate(-0.26), "-0.3");
}

// A bar from 0 would hide a small change.
TEST(PageWaterfall, ShowsTheRangeOfASmallChange) {
  using pages::WaterfallTerm;
  const auto drawn = [](double change) {
    return pages::waterfall("change", "before", 191'400, "after", {WaterfallTerm{.name = "compute", .change = change}},
                            0, Unit::nanoseconds);
  };
  const std::string small = drawn(1'000);
  EXPECT_THAT(small, HasSubstr("the difference from before (191.4 us)"));
  EXPECT_THAT(small, HasSubstr(">+1 us<"));
  EXPECT_THAT(small, Not(HasSubstr(">50 us<")));
  EXPECT_THAT(drawn(300'000), Not(HasSubstr("the difference from")));
}

// Names end left of the plot, and values begin right of their bars, so that neither covers the other.
TEST(PageWaterfall, PrintsNoValueOverAName) {
  const std::string page =
      pages::waterfall("change", "before", 199'000, "after",
                       {pages::WaterfallTerm{.name = "compute", .change = -150'000}}, 0, Unit::nanoseconds);
  const std::regex text("<text x=\"([0-9.]+)\"[^>]*>(199.0 us|-150.0 us|49.00 us)<");
  int found = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), text), end; at != end; ++at, ++found) {
    EXPECT_GT(std::stod((*at)[1]), 200) << (*at)[2];
    EXPECT_LT(std::stod((*at)[1]), 880) << (*at)[2];
  }
  EXPECT_EQ(found, 3);
}

TEST(PageAxis, MarksAreRoundAndHoldTheValues) {
  Axis linear{.name = "", .unit = Unit::nanoseconds};
  for (const double value : {0.0, 3.7e6}) linear.hold(value);
  linear.round();
  EXPECT_EQ(linear.high, 4e6);
  ASSERT_EQ(linear.marks().size(), 5u);
  EXPECT_EQ(linear.marks()[1].text, "1 ms");
  EXPECT_EQ(linear.share(1e6), 0.25);

  Axis sizes{.name = "", .unit = Unit::bytes, .is_logarithmic = true};
  for (const double value : {1024.0, 0.0, 65536.0}) sizes.hold(value);
  sizes.round();
  EXPECT_EQ(sizes.marks().front().text, "1 KiB");
  EXPECT_EQ(sizes.marks().back().text, "64 KiB");
  EXPECT_FALSE(sizes.can_show(0));
}

TEST(PageAxis, HasLengthWithOneValueOrNone) {
  for (const bool is_logarithmic : {false, true}) {
    Axis none{.name = "", .is_logarithmic = is_logarithmic};
    none.round();
    EXPECT_LT(none.low, none.high);
    Axis one{.name = "", .is_logarithmic = is_logarithmic};
    one.hold(5);
    one.round();
    EXPECT_LT(one.low, one.high);
    EXPECT_GE(one.marks().size(), 2u);
  }
}

TEST(Page, OfARunHasItsPicturesAndIsTheSameEveryTime) {
  const std::string page = page_of(run_document(), "run");
  EXPECT_EQ(page, page_of(run_document(), "run"));
  for (const char* heading :
       {"Where a step goes", "The median step", "Who waited for whom", "Collectives", "Loss", "Settings and notes"}) {
    EXPECT_THAT(page, HasSubstr(std::string("<h2>") + heading + "</h2>"));
  }
  EXPECT_THAT(page, HasSubstr("CPU:1 made the others wait most often: in 1 of its 1 calls."));
  EXPECT_LT(page.size(), 1'000'000u);
}

// For those who cannot see the pictures.
TEST(Page, OfARunHasTablesOfItsTimelineAndOfItsLoss) {
  const std::string page = page_of(run_document(), "run");
  EXPECT_THAT(page, HasSubstr("<caption>time of each stream in the step</caption>"));
  EXPECT_THAT(page, HasSubstr("<tr><th scope=\"row\">task:0 CPU:0 stream 0</th><td>60.00 ns</td>"));
  EXPECT_THAT(page, HasSubstr("<tr><th scope=\"row\">60.00 ns</th><td class=\"left\">35.00 ns</td><td class=\"left\">"
                              "task:0 CPU:0 stream 1</td><td class=\"left\">all_reduce</td><td class=\"left\">"
                              "communication</td><td>yes</td><td></td></tr>"));
  EXPECT_THAT(page, HasSubstr("communication</td><td></td><td>yes</td></tr>")) << "the last one";
  EXPECT_THAT(page, HasSubstr("<caption>loss</caption>"));
  EXPECT_THAT(page, HasSubstr("<tr><th scope=\"row\">1</th><td>0.1</td></tr>"));
  Json document = run_document();
  for (int i = 0; i < 1000; ++i) document["loss"].push_back(7);
  const std::string longer = page_of(document, "run");
  EXPECT_THAT(longer, HasSubstr("<caption>loss, one of 6 steps</caption>"));
  EXPECT_THAT(longer, HasSubstr("<tr><th scope=\"row\">1002</th><td>7</td></tr>")) << "the last one, too";
}

TEST(Page, SaysThatNobodyWaitedWhereAllArriveTogether) {
  Json document = report_to_json(full_report());
  const Timeline timeline = two_device_timeline(
      {step_record(0, 0, 0, 100), collective_record(1, 0, 0, 60, 95), collective_record(1, 1, 0, 60, 95)});
  document["details"] = run_details_to_json(run_details(timeline, 0, Pace::in_step));
  const std::string page = page_of(document, "run");
  EXPECT_THAT(page, HasSubstr("All ranks arrived together."));
  EXPECT_THAT(page, Not(HasSubstr("made the others wait")));
}

TEST(Page, EveryPictureHasANameAndEveryElementIsClosed) {
  const std::string page = page_of(run_document(), "run");
  EXPECT_EQ(count_of(page, "role=\"img\""), count_of(page, "role=\"img\">\n<title>"));
  EXPECT_GE(count_of(page, "role=\"img\""), 5u);
  for (const char* element : {"svg", "section", "figure", "table", "details", "div", "dl"}) {
    const std::string open = std::string("<") + element;
    EXPECT_EQ(count_of(page, open + ">") + count_of(page, open + " "),
              count_of(page, std::string("</") + element + ">"))
        << element;
  }
}

TEST(Page, AllowsNothingButItsOwnStyleAndScripts) {
  const std::string whole = page_of(run_document(), "run");
  const std::string page = whole.substr(0, whole.find("</main>"));  // the scripts below are libraries'
  EXPECT_THAT(page, HasSubstr("default-src 'none'; style-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr(" style=\"")));
  EXPECT_THAT(page, Not(HasSubstr("onclick=")));
  EXPECT_FALSE(std::regex_search(page, std::regex("(src|href)=\"")));
  for (const pages::Asset& script : pages::scripts()) EXPECT_EQ(script.sha256_base64.size(), 44u);
}

TEST(Page, ShowsATextAsItIsWhateverIsInIt) {
  Json document = run_document();
  document["scenario"] = "</script><script>alert(1)</script><!-- \xC3\xBC";
  const std::string page = page_of(document, "run");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- \xC3\xBC"));
}

TEST(Page, IsNoDocument) {
  const std::string page = page_of(run_document(), "run");
  try {
    report_from_json(page, "page.html");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("page.html:1:1: is a page, which only shows a result; expected the result"));
  }
}

TEST(Page, OfAReportWithoutItsRecordsSaysSo) {
  EXPECT_THAT(page_of(report_to_json(full_report()), "run"), HasSubstr("The records of the steps are not in this"));
}

TEST(Page, OfAComparisonExplainsTheErrorByItsParts) {
  Report predicted = simulated_report();
  predicted.summary.step_time.mean += 300'000;
  predicted.summary.step_time.median += 300'000;
  predicted.summary.per_step.compute += 300'000;
  predicted.summary.collectives[0].time_ns = 120'000;
  const std::string page = page_of(comparisons_to_json({compare(full_report(), predicted)}), "comparison");
  EXPECT_THAT(page, HasSubstr("the simulated step is +15.0 % from the measured one (noise 2.0 %)"));
  EXPECT_THAT(page, HasSubstr("+300.0 us"));
  EXPECT_THAT(page, HasSubstr("Simulated against measured times of collectives"));
}

TEST(Page, OfADisturbedComparisonExplainsNoError) {
  Report measured = full_report();
  measured.machine_use = MachineUse{.cores = 2, .time = 500, .own = 750, .waited = 300, .others = 250};
  const std::string page = page_of(comparisons_to_json({compare(measured, simulated_report())}), "comparison");
  EXPECT_THAT(page, HasSubstr("disturbed, no error can be told: 25.0 % of the processor time"));
  EXPECT_THAT(page, Not(HasSubstr("What the error is made of")));
}

TEST(Page, OfARunSaysWhetherItIsNormal) {
  Report report = full_report();
  report.expectation = Expectation{.topology = "machine.yaml",
                                   .step_time = 1'600'000,
                                   .band = {.intervals = {{.low = -0.2, .high = 0.2}}, .basis = "of some"},
                                   .largest = GapTerm{.name = "skew", .time = 300'000}};
  const std::string beyond = page_of(report_to_json(report), "run");
  EXPECT_THAT(beyond, HasSubstr("not normal: +25.0 % from what the model expects"));
  EXPECT_THAT(beyond, HasSubstr("of these +400.0 us, skew explains +300.0 us"));
  report.expectation->band.intervals = {{.low = -0.3, .high = 0.3}};
  EXPECT_THAT(page_of(report_to_json(report), "run"), HasSubstr(">normal: +25.0 % from what"));
  report.expectation->band.intervals.clear();
  const std::string unknown = page_of(report_to_json(report), "run");
  EXPECT_THAT(unknown, HasSubstr(">+25.0 % from what"));
  EXPECT_THAT(unknown, HasSubstr("how far the model may be off is not known"));
  report.machine_use = MachineUse{.cores = 2, .time = 500, .own = 750, .waited = 300, .others = 250};
  const std::string disturbed = page_of(report_to_json(report), "run");
  EXPECT_THAT(disturbed, HasSubstr("not compared, for the run was disturbed"));
  EXPECT_THAT(disturbed, Not(HasSubstr("normal: ")));
  EXPECT_THAT(disturbed, Not(HasSubstr("skew")));
  Report predicted = simulated_report();
  predicted.expected_error = {.intervals = {{.low = -0.258, .high = 0.3}}, .basis = "193 published throughputs"};
  EXPECT_THAT(page_of(report_to_json(predicted), "run"),
              HasSubstr("19 of 20 measured were within that of predicted: 193 published"));
  predicted.assumptions = {{.figure = "sustained of 'a GPU'",
                            .value = "0.87",
                            .from = "0.7",
                            .to = "1",
                            .step_from = 5'000,
                            .step_to = 4'000}};
  EXPECT_THAT(page_of(report_to_json(predicted), "run"), AllOf(HasSubstr("What moves it most"), HasSubstr("5.000 us")));
  predicted.expected_error = {.intervals = {}, .basis = "nothing was compared"};
  EXPECT_THAT(page_of(report_to_json(predicted), "run"), HasSubstr("no band is known: nothing was compared"));
}

TEST(Page, OfAComparisonShadesWhatWasCalibratedAndLeavesTheRestHollow) {
  Report predicted = simulated_report();
  CollectiveSummary& one = predicted.summary.collectives.at(0);
  predicted.calibrated = {{.operation = one.operation,
                           .devices = one.devices,
                           .from_bytes = 0,
                           .to_bytes = one.bytes,
                           .from = 50'000,
                           .to = 400'000}};
  const auto page = [&] { return page_of(comparisons_to_json({compare(full_report(), predicted)}), "comparison"); };
  EXPECT_THAT(page(), HasSubstr("<title>calibrated</title>"));
  EXPECT_EQ(count_of(page(), " hollow\""), 0u);
  predicted.calibrated[0].to_bytes = one.bytes - 1;
  EXPECT_THAT(page(), HasSubstr("<title>calibrated</title>"));
  EXPECT_EQ(count_of(page(), " hollow\""), 1u);
  EXPECT_THAT(page(), HasSubstr(one.operation + ", extrapolated"));
  predicted.calibrated.clear();
  EXPECT_THAT(page(), Not(HasSubstr("<title>calibrated</title>")));
}

TEST(Page, OfARunDrawsTheBoundOfItsCollectives) {
  Json document = run_document();
  EXPECT_THAT(page_of(document, "run"), Not(HasSubstr("At most")));
  const CollectiveSummary one = full_report().summary.collectives.at(0);
  document["details"]["bounds"] = {{{"operation", one.operation},
                                    {"devices", one.devices},
                                    {"bus_bandwidth", 450e9},
                                    {"limited_by", "the links of w0.gpu0"}}};
  const std::string page = page_of(document, "run");
  EXPECT_THAT(page, HasSubstr(fmt::format("At most 450.0 GB/s for {} of {}: the links of w0.gpu0.", one.operation,
                                          one.devices)));
  EXPECT_THAT(page, HasSubstr("bound 450.0 GB/s"));
  document["details"].erase("bounds");
  EXPECT_THAT(page_of(document, "run"), Not(HasSubstr("At most"))) << "of an earlier version";
}

TEST(Page, OfARunDrawsTheMemoryOfADevice) {
  Json document = run_document();
  EXPECT_THAT(page_of(document, "run"), Not(HasSubstr("Memory of a device")));
  const MemoryCurve curve{
      .device = "GPU:3",
      .step = 1,
      .length = 3'000'000,
      .need = {.parameters = 2'000'000'000,
               .activations = 5'000'000'000,
               .workspace = 500'000'000,
               .available = 80'000'000'000,
               .moment = "the backward pass, head"},
      .points = {
          {0, 0, 0, ""}, {1'000'000, 5'000'000'000, 500'000'000, "the backward pass, head"}, {2'000'000, 0, 0, ""}}};
  document["details"]["memory"] = memory_curve_to_json(curve);
  const std::string page = page_of(document, "run");
  EXPECT_THAT(page,
              HasSubstr("GPU:3 holds most in the backward pass, head, 1.000 ms after the start of step 1: 7.500 GB."));
  EXPECT_THAT(page, HasSubstr("Memory in the course of a step"));
  EXPECT_THAT(page, HasSubstr("available"));
}

TEST(Page, OfARunSaysForWhomCollectivesWait) {
  Json document = report_to_json(waiting_report());
  const std::string page = page_of(document, "run");
  EXPECT_THAT(page, HasSubstr("<td>20.00 us</td><td>task:1 GPU:0</td><td>150.0 us</td>"));
  EXPECT_THAT(page, HasSubstr("<td>task:0 GPU:0</td><td>40.00 us</td><td>150.0 us</td>"));
  EXPECT_THAT(page, HasSubstr("<td>task:1 GPU:0</td><td>0</td><td>145.0 us</td>"));
  document["collectives"][0]["ranks"][1]["rank"] = 2;
  EXPECT_THROW(page_of(document, "run"), InputError) << "a rank without a name";
}

TEST(Page, OfAChecksVerdictIsColoredAndInWords) {
  Report slower = simulated_report();
  slower.summary.step_time.mean += 1000;
  slower.summary.step_time.median += 1000;
  slower.summary.per_step.compute += 1000;
  const CheckResult result = check(slower, simulated_report(), {});
  const std::string page = page_of(check_to_json(result, slower, simulated_report()), "check");
  EXPECT_THAT(page, HasSubstr("<p class=\"verdict bad\">regressed</p>"));
  EXPECT_THAT(page, HasSubstr("From the baseline to this run"));
}

TEST(Page, OfASuiteHasAVerdictForEachScenario) {
  Json document = document_of("suite");
  document["summary"] = {{"ok", 1}, {"regressed", 1}};
  for (const char* outcome : {"ok", "regressed"}) {
    document["scenarios"].push_back({{"file", "a.yaml"},
                                     {"scenario", outcome},
                                     {"mode", "exact"},
                                     {"outcome", outcome},
                                     {"exit_code", std::string_view(outcome) == "ok" ? 0 : 1},
                                     {"reason", "a reason"},
                                     {"step_time_ns", 1030},
                                     {"reference_ns", 1000},
                                     {"change", 0.03}});
  }
  const std::string page = page_of(document, "suite");
  EXPECT_THAT(page, HasSubstr("<p class=\"verdict bad\">1 ok, 1 regressed</p>"));
  EXPECT_THAT(page, HasSubstr("<td>+3.0 %</td>"));
  EXPECT_LT(page.find("<th scope=\"row\">regressed</th>"), page.find("<th scope=\"row\">ok</th>"))
      << "what failed is first";
}

TEST(Page, OfALaunchAgainstItsHistoryShowsTheLevel) {
  Json document = document_of("history_check");
  document.update({{"verdict", "ok"},
                   {"scenario", "digits"},
                   {"machine", "a machine"},
                   {"level_ns", 1'000'000},
                   {"margin", 0.03},
                   {"reasons", {"inside the margin"}},
                   {"launches", {{{"step_time_ns", 1'010'000}}}}});
  const std::string page = page_of(document, "history check");
  EXPECT_THAT(page, HasSubstr("<p class=\"verdict good\">ok</p>"));
  EXPECT_EQ(count_of(page, "class=\"dashes"), 3u);
  document["level_ns"] = nullptr;
  EXPECT_EQ(count_of(page_of(document, "history check"), "class=\"dashes"), 0u) << "too few launches";
}

TEST(Page, OfWhatHasNoneIsRefused) {
  for (const char* text : {R"({"kind": "poem"})", "[1]", "{}", R"({"kind": 3})"}) {
    EXPECT_THROW(page_of(parse_json(text, "x.json"), "x.json"), InputError) << text;
  }
  EXPECT_THROW(page_of(parse_json(R"({"kind": "comparison", "comparisons": []})", "x.json"), "x.json"), InputError);
  EXPECT_THROW(page_of(parse_json(R"({"kind": "comparison", "comparisons": [{}]})", "x.json"), "x.json"), InputError);
  EXPECT_THROW(page_of(parse_json(R"({"kind": "check"})", "x.json"), "x.json"), InputError);
  EXPECT_THROW(page_of(parse_json(R"({"kind": "paired_check"})", "x.json"), "x.json"), InputError);
}

}  // namespace
}  // namespace tandem
