#include "reports/checks/suite.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using testing::HasSubstr;

CheckedScenario judged(const std::string& name, Verdict verdict, int exit_code, const std::string& reason) {
  CheckedScenario checked{.file = "gate/" + name + ".yaml", .name = name, .mode = "exact"};
  checked.state = CheckState::judged;
  checked.verdict = verdict;
  checked.exit_code = exit_code;
  checked.reason = reason;
  checked.step_time = 2'500'000;
  checked.reference = 2'000'000;
  checked.change = 0.25;
  checked.samples = 40;
  return checked;
}

CheckedSuite suite_of_all() {
  CheckedSuite suite = {judged("fine", Verdict::ok, 0, "as before"),
                        judged("slow <a & \"b\">", Verdict::regressed, 1, "100% slower,\nby: far | much"),
                        judged("unsure", Verdict::inconclusive, 6, "too few"),
                        judged("fast", Verdict::improved, 0, "faster")};
  suite[1].interval = {0.2, 0.3};
  CheckedScenario broken{.file = "gate/broken.yaml", .line = 7, .name = "gate/broken.yaml"};
  broken.exit_code = 3;
  broken.reason = "gate/broken.yaml:7:3: steps: is missing";
  suite.push_back(broken);
  CheckedScenario skipped{.file = "gate/sim.yaml", .name = "sim"};
  skipped.state = CheckState::skipped;
  skipped.reason = "no baseline";
  suite.push_back(skipped);
  return suite;
}

TEST(Suite, CountsOutcomesFromGoodToBad) {
  EXPECT_EQ(summary_of(suite_of_all()), "1 ok, 1 improved, 1 skipped, 1 inconclusive, 1 regressed, 1 failed");
}

TEST(Suite, TextHasARowEachAndTheReasonsOfWhatIsNotOk) {
  const std::string text = suite_text(suite_of_all());
  EXPECT_THAT(text, HasSubstr("fine"));
  EXPECT_THAT(text, testing::Not(HasSubstr("as before")));
  EXPECT_THAT(text, HasSubstr("gate/unsure.yaml: too few"));
  EXPECT_THAT(text, HasSubstr("\ngate/broken.yaml:7:3: steps: is missing\n")) << "the file only once";
  EXPECT_THAT(text, HasSubstr("+25.0 %"));
  EXPECT_TRUE(text.ends_with("1 failed\n"));
}

TEST(Suite, JsonHasEveryScenario) {
  const auto json = suite_to_json(suite_of_all());
  EXPECT_EQ(json["kind"], "suite");
  EXPECT_EQ(json["summary"]["regressed"], 1);
  ASSERT_EQ(json["scenarios"].size(), 6U);
  EXPECT_EQ(json["scenarios"][1]["interval"], nlohmann::ordered_json({0.2, 0.3}));
  EXPECT_EQ(json["scenarios"][4]["outcome"], "failed");
  EXPECT_EQ(json["scenarios"][4]["exit_code"], 3);
}

TEST(Suite, JunitSkipsWhatIsInconclusive) {
  const std::string xml = suite_junit(suite_of_all());
  EXPECT_THAT(xml, HasSubstr("<testsuites tests=\"6\" failures=\"1\" errors=\"1\" skipped=\"2\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"slow &lt;a &amp; &quot;b&quot;&gt;\""));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"regressed\" message=\"100% slower,&#10;by: far | much\">"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"inconclusive: too few\"/>"));
  EXPECT_THAT(xml, HasSubstr("<error type=\"exit code 3\""));
  EXPECT_THAT(xml, HasSubstr("name=\"fine\" file=\"gate/fine.yaml\" line=\"1\" time=\"0.002500000\"/>"));
  CheckedSuite control = {judged("a\x01z", Verdict::ok, 0, "")};
  EXPECT_THAT(suite_junit(control), HasSubstr("name=\"a\\x01z\"")) << "XML has no such character";
}

TEST(Suite, AnExpectationThatIsNotMetFailsWhateverTheVerdict) {
  const CheckedSuite suite = {judged("one", Verdict::ok, 1, "expectation not met"),
                              judged("two", Verdict::inconclusive, 1, "expectation not met")};
  EXPECT_THAT(suite_junit(suite), HasSubstr("failures=\"2\" errors=\"0\" skipped=\"0\""));
  CheckedSuite missed = {judged("one", Verdict::ok, 1, "not met"), judged("two", Verdict::regressed, 1, "slow")};
  for (CheckedScenario& one : missed) one.misses_expectation = true;
  EXPECT_EQ(summary_of(missed), "1 expectation not met, 1 regressed");
  EXPECT_THAT(suite_annotations(suite, ""), testing::Not(HasSubstr("::warning")));
}

TEST(Suite, MarkdownKeepsItsTable) {
  const std::string text = suite_markdown(suite_of_all());
  EXPECT_THAT(text, testing::StartsWith("### tandem check: 1 ok, "));
  EXPECT_THAT(text, HasSubstr("| slow &lt;a &amp; \"b\"> | **regressed** | 2.500 ms | 2.000 ms | +25.0 % | "
                              "+20.0 to +30.0 % | 100% slower, by: far \\| much |\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 + 2 + 6 + 1);
}

TEST(Suite, AnnotationsAreEscapedAndPointIntoTheRepository) {
  const std::string text = suite_annotations(suite_of_all(), "");
  EXPECT_THAT(text, HasSubstr("::error file=gate/slow <a & \"b\">.yaml,line=1,title=slow <a & \"b\">%3A regressed::"
                              "100%25 slower,%0Aby: far | much\n"));
  EXPECT_THAT(text, HasSubstr("::warning file=gate/unsure.yaml,"));
  EXPECT_THAT(text, HasSubstr("::notice file=gate/fast.yaml,"));
  EXPECT_THAT(text, HasSubstr("::error file=gate/broken.yaml,line=7,"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << "none for what is ok or skipped";
  CheckedSuite absolute = {judged("slow", Verdict::regressed, 1, "slow")};
  absolute[0].file = "/repository/gate/slow.yaml";
  EXPECT_THAT(suite_annotations(absolute, "/repository"), HasSubstr("file=gate/slow.yaml,"));
  EXPECT_THAT(suite_annotations(absolute, "/elsewhere"), HasSubstr("file=/repository/gate/slow.yaml,"));
}

TEST(Suite, TrackersReadStepTimes) {
  const auto json = suite_google_benchmark(suite_of_all(), "2026-11-22T12:00:00Z");
  EXPECT_EQ(json["context"]["date"], "2026-11-22T12:00:00Z");
  ASSERT_EQ(json["benchmarks"].size(), 4U) << "those with a time";
  for (const char* key : {"name", "real_time", "cpu_time", "time_unit", "iterations", "threads", "run_type"}) {
    EXPECT_TRUE(json["benchmarks"][0].contains(key)) << key;
  }
  EXPECT_EQ(json["benchmarks"][0]["real_time"], 2'500'000);
  EXPECT_EQ(json["benchmarks"][0]["iterations"], 40);
  const std::string csv = suite_csv(suite_of_all());
  EXPECT_THAT(csv, HasSubstr("fine,gate/fine.yaml,exact,ok,2500000,2000000,0.25,,\n"));
  EXPECT_THAT(csv,
              HasSubstr("\"slow <a & \"\"b\"\">\",\"gate/slow <a & \"\"b\"\">.yaml\",exact,regressed,2500000,2000000,"
                        "0.25,0.2,0.3\n"));
}

}  // namespace
}  // namespace tandem
