#include "reports/run/report_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/reports/testing.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::vector<std::string> problems_in(const std::string& text) {
  try {
    report_from_json(text, "baseline.json");
  } catch (const InputError& error) {
    std::vector<std::string> problems;
    for (const Diagnostic& diagnostic : error.diagnostics()) problems.push_back(diagnostic.text());
    return problems;
  }
  return {};
}

TEST(ReportJson, ReadsBackWhatItWrites) {
  const std::string text = json_text(report_to_json(full_report()));
  EXPECT_EQ(json_text(report_to_json(report_from_json(text, "baseline.json"))), text);
}

Report of_several_workers() {
  Report report = full_report();
  report.workers = 3;
  report.parameter_servers = 2;
  report.asynchronous = true;
  report.summary.other_devices = OtherDevices{.busiest = "a server", .count = 2, .per_step = {.update = 7, .idle = 8}};
  for (const Nanoseconds median : {1'000'000, 2'000'000, 4'000'000}) {
    report.summary.workers.push_back(
        {.step_time =
             {.mean = median, .median = median, .min = 1, .p95 = 2, .median_absolute_deviation = 3, .samples = 4},
         .per_step = {.compute = median, .communication = 5}});
  }
  return report;
}

TEST(ReportJson, ReadsBackSeveralWorkers) {
  Report report = of_several_workers();
  report.machine_use = MachineUse{.cores = 2,
                                  .time = 1,
                                  .own = 2,
                                  .waited = 3,
                                  .others = 4,
                                  .stolen = 5,
                                  .involuntary_switches = 6,
                                  .frequency_hz = {2e9, 1.5e9}};
  report.machine_use->gpus = {{.gpu = "GPU 0",
                               .readings = 9,
                               .slowed = 3,
                               .slowed_by = {"heat"},
                               .power_limited = 2,
                               .other_programs = 1,
                               .others_share = 0.125}};
  report.calibrated = {{.operation = "all_reduce",
                        .devices = 8,
                        .nodes = 2,
                        .from_bytes = 1024,
                        .to_bytes = 4096,
                        .from = 10,
                        .to = 20}};
  const std::string text = json_text(report_to_json(report));
  const Report read = report_from_json(text, "baseline.json");
  EXPECT_EQ(json_text(report_to_json(read)), text);
  EXPECT_EQ(read.throughput(), report.throughput());
  EXPECT_EQ(read.workers, 3);
  EXPECT_EQ(read.machine_use, report.machine_use);
  EXPECT_EQ(read.calibrated, report.calibrated);
  EXPECT_EQ(read.summary.workers.at(1).per_step, report.summary.workers.at(1).per_step);
  EXPECT_EQ(read.summary.other_devices->per_step, report.summary.other_devices->per_step);
}

TEST(ReportJson, ReadsReportsOfOneWorkerFromBeforeThereWereSeveral) {
  nlohmann::ordered_json json = report_to_json(full_report());
  for (const char* key : {"workers", "parameter_servers", "asynchronous"}) json.erase(key);
  const Report report = report_from_json(json_text(json), "baseline.json");
  EXPECT_EQ(report.workers, 1);
  EXPECT_EQ(report.throughput(), full_report().throughput());
}

TEST(ReportJson, HoldsWhatThePageOfReportsPromises) {
  const nlohmann::ordered_json json = report_to_json(full_report());
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["kind"], "report");
  EXPECT_EQ(json["scenario"], "Ziffern \u00fcben \u6570\u5b57");
  EXPECT_EQ(json["topology"], (nlohmann::ordered_json{{"name", "this machine"}, {"provenance", "measured"}}));
  EXPECT_TRUE(json["step_time_ns"]["median"].is_number_integer());
  EXPECT_EQ(json["step_time_ns"]["mad"], 40'000);
  EXPECT_EQ(json["throughput"]["value"], 32000.0);
  EXPECT_EQ(json["per_step_ns"]["exposed_communication"], 500'000);
  EXPECT_EQ(json["collectives"][0]["calls_per_step"], 4);
  EXPECT_EQ(json["loss"][2], 1.0 / 3.0);
  EXPECT_EQ(json["settings"]["threads"], "2");
}

TEST(ReportJson, SaysWhatExecutedACollectiveWhereThereWasAChoice) {
  Report report = full_report();
  EXPECT_FALSE(report_to_json(report)["collectives"][0].contains("algorithm"));
  report.summary.collectives[0].algorithm = "ring LL128, 24 channels";
  const nlohmann::ordered_json json = report_to_json(report);
  EXPECT_EQ(json["collectives"][0]["algorithm"], "ring LL128, 24 channels");
  EXPECT_EQ(report_from_json(json.dump(), "r.json").summary.collectives[0].algorithm, "ring LL128, 24 channels");
}

TEST(ReportJson, GivesTheSameBytesForTheSameReport) {
  EXPECT_EQ(json_text(report_to_json(full_report())), json_text(report_to_json(full_report())));
}

TEST(ReportJson, WritesNoNumberThatIsNotFinite) {
  Report report = full_report();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  report.loss = {1, nan, std::numeric_limits<double>::infinity()};
  report.metrics["perplexity"] = nan;
  report.units_per_step = nan;
  const std::string text = json_text(report_to_json(report));
  const Report back = report_from_json(text, "r.json");
  EXPECT_EQ(nlohmann::json::parse(text)["loss"], nlohmann::json::parse("[1.0, null, null]"));
  EXPECT_TRUE(std::isnan(back.loss.at(1)));
  EXPECT_TRUE(std::isnan(back.metrics.at("perplexity")));
  EXPECT_EQ(back.throughput(), 0);
}

TEST(ReportJson, SurvivesNamesThatAreNotUtf8) {
  Report report = full_report();
  report.scenario = "caf\xe9";
  EXPECT_EQ(nlohmann::json::parse(json_text(report_to_json(report)))["scenario"], "caf\ufffd");
}

TEST(ReportJson, NamesEverythingThatIsWrongAtOnce) {
  nlohmann::ordered_json json = report_to_json(full_report());
  json.erase("engine");
  json["step_time_ns"]["median"] = -5;
  json["collectives"][0]["bytes"] = "many";
  json["loss"] = 3;
  json["replicas"] = 1e300;
  const std::string text = json.dump();
  const auto place = [&](const std::string& value) {
    return fmt::format("baseline.json:1:{}: ", text.find(value) + 1);
  };
  EXPECT_THAT(problems_in(text),
              testing::ElementsAre("baseline.json:1:1: engine: is missing",
                                   place("1e+300") + "replicas: expected a whole number of 0 or more",
                                   place("-5") + "step_time_ns.median: expected a whole number of 0 or more",
                                   place("\"many\"") + "collectives[0].bytes: expected a whole number of 0 or more",
                                   place("3,\"metrics\"") + "loss: expected a list"));
}

// Times and bytes are added up.
TEST(ReportJson, RefusesNumbersThatNoReportHas) {
  const auto problems = [](const char* number) {
    nlohmann::ordered_json json = report_to_json(full_report());
    json["per_step_ns"]["compute"] = "here";
    std::string text = json.dump();
    text.replace(text.find("\"here\""), 6, number);
    std::vector<std::string> found = problems_in(text);
    for (std::string& one : found) one.erase(0, one.find(" ") + 1);
    return found;
  };
  for (const char* number :
       {"100000000000000001", "9223372036854775807", "9223372036854775808", "18446744073709551615"}) {
    EXPECT_THAT(problems(number), testing::ElementsAre("per_step_ns.compute: is larger than any report has")) << number;
  }
  EXPECT_THAT(problems("1e300"), testing::ElementsAre("per_step_ns.compute: expected a whole number of 0 or more"));
  nlohmann::ordered_json json = report_to_json(full_report());
  json["schema_version"] = 1e300;
  EXPECT_THAT(problems_in(json.dump()),
              testing::ElementsAre(testing::EndsWith("schema_version: expected a whole number of 0 or more")));
}

TEST(ReportJson, RefusesOtherDocuments) {
  EXPECT_THAT(problems_in("{\"kind\": \"comparison\", \"schema_version\": 1}"),
              testing::ElementsAre(
                  "baseline.json:1:10: kind: is 'comparison'; expected a report, as `tandem run --json` writes it"));
  EXPECT_THAT(problems_in("[]"), testing::ElementsAre("baseline.json:1:1: expected an object"));
  EXPECT_THAT(
      problems_in("{\"kind\": \"report\", \"schema_version\": 2}"),
      testing::ElementsAre("baseline.json:1:38: schema_version: version 2 is not known; this Tandem reads version 1"));
  EXPECT_THAT(
      problems_in("{\"kind\": "),
      testing::ElementsAre(testing::StartsWith("baseline.json:1:10: the file ends too early (a value is missing)")));
  EXPECT_THAT(problems_in(""), testing::SizeIs(1));
}

// As tests/golden compares whole reports with simulations, this holds for every simulated example.
TEST(GoldenReport, PartsOfAStepAddUpToItInTheMeanAndForEveryWorker) {
  const auto sum_of = [](const PerStep& step) {
    Nanoseconds sum = 0;
    for (const StepPart& part : step_parts()) sum += step.*part.time;
    return sum;
  };
  int reports = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/tests/golden")) {
    if (entry.path().extension() != ".json") continue;
    const Report report = load_report(entry.path().string());
    EXPECT_EQ(sum_of(report.summary.per_step), report.summary.step_time.mean) << entry.path();
    for (const WorkerSummary& worker : report.summary.workers) {
      EXPECT_EQ(sum_of(worker.per_step), worker.step_time.mean) << entry.path();
    }
    ++reports;
  }
  EXPECT_GE(reports, 12);
}

TEST(ReportJson, LeavesFieldsOfNewerVersionsAlone) {
  nlohmann::ordered_json json = report_to_json(full_report());
  json["energy_joules"] = 12;
  EXPECT_EQ(report_from_json(json.dump(), "r.json").replicas, 2);
}

TEST(ReportJson, SaysWhichFileIsMissing) {
  EXPECT_THROW(
      {
        try {
          load_report("no-such-baseline.json");
        } catch (const InputError& error) {
          EXPECT_THAT(error.what(), testing::HasSubstr("no-such-baseline.json"));
          throw;
        }
      },
      InputError);
}

}  // namespace
}  // namespace tandem
