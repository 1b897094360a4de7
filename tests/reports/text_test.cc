#include <gmock/gmock.h>

#include <sstream>

#include "reports/base/text_table.h"
#include "reports/comparison/compare.h"
#include "reports/run/report_text.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

TEST(TextTable, AlignsByWhatIsSeenAndNotByBytes) {
  TextTable table;
  table.add({"\u00fcben", "time"});
  table.add_rule();
  table.add({"a", "1.5 \u00b5s"});
  EXPECT_EQ(table.text(), "\u00fcben    time\n------------\na     1.5 \u00b5s\n");
}

TEST(Texts, OfQuantities) {
  EXPECT_EQ(time_text(Nanoseconds{0}), "0");
  EXPECT_EQ(time_text(Nanoseconds{1'234'567}), "1.235 ms");
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(40), "40 B");
  EXPECT_EQ(size_text(4096), "4 KiB");
  EXPECT_EQ(size_text(std::int64_t{25} << 20), "25 MiB");
  EXPECT_EQ(size_text(102'228'128), "102.2 MB");
  EXPECT_EQ(error_text(0.0321), "+3.2 %");
  EXPECT_EQ(error_text(-0.5), "-50.0 %");
  EXPECT_EQ(error_text(0.0001), "<0.1 %");
  EXPECT_EQ(error_text(0), "0 %");
  EXPECT_EQ(error_text(12.34), "+1234 %");
  EXPECT_EQ(rate_text(32000, "examples/s"), "32.0 k examples/s");
  EXPECT_EQ(rate_text(12.5, "examples/s"), "12.5 examples/s");
}

TEST(ReportText, HoldsEveryFigure) {
  const std::string text = report_text(full_report());
  EXPECT_THAT(text, HasSubstr("Ziffern \u00fcben \u6570\u5b57: 2 replicas, mirrored, reduction_to_one_device\n"));
  EXPECT_THAT(text, HasSubstr("measured on engine cpu, topology this machine (figures: measured)"));
  EXPECT_THAT(text,
              testing::ContainsRegex("step time +2.000 ms +mean of 37; median 2.000 ms, min 1.900 ms, p95 2.500 ms"));
  EXPECT_THAT(text, testing::ContainsRegex("throughput +32.0 k examples/s"));
  EXPECT_THAT(text, testing::ContainsRegex("scaling +87.5 %"));
  EXPECT_THAT(text, testing::ContainsRegex("  exposed communication +500.0 us +25.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("  idle +130.0 us +6.5 %"));
  EXPECT_THAT(text, HasSubstr("hidden behind these: 30.00 us of input (1.5 %), 200.0 us of communication (10.0 %)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("all_reduce +1 MiB +2 +4 +0 +150.0 us +6.990 GB/s +6.980 GB/s"));
  EXPECT_THAT(text, HasSubstr("blas OpenBLAS 0.3.21, threads 2"));
  EXPECT_THAT(text, HasSubstr("test_accuracy"));
  EXPECT_THAT(text, HasSubstr("  - a caveat"));
}

TEST(ReportText, DividesCollectivesIntoWaitingAndTransferAndNamesTheLastRank) {
  const std::string text = report_text(waiting_report());
  EXPECT_THAT(text, testing::ContainsRegex("collectives +size +devices +calls/step +waiting +transfer +algbw +busbw"));
  EXPECT_THAT(text, testing::ContainsRegex("all_reduce +1 MiB +2 +4 +20.00 us +150.0 us +6.990 GB/s"));
  EXPECT_THAT(text, HasSubstr("  waiting: all_reduce of 1 MiB on 2 for task:1 GPU:0\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("by rank")));
  const std::string all = report_text(waiting_report(), true);
  EXPECT_THAT(all, testing::ContainsRegex("all_reduce +1 MiB +2 +task:0 GPU:0 +40.00 us +150.0 us"));
  EXPECT_THAT(all, testing::ContainsRegex("all_reduce +1 MiB +2 +task:1 GPU:0 +0 +145.0 us"));
  Report together = waiting_report();
  for (CallShare& share : together.summary.collectives[0].ranks) share.waiting = 7;
  EXPECT_THAT(report_text(together), testing::Not(HasSubstr("  waiting: "))) << "nobody is last";
}

TEST(ReportText, ShortensLongTablesOfCollectives) {
  Report report = full_report();
  report.summary.collectives.resize(13, report.summary.collectives.front());
  EXPECT_THAT(report_text(report), testing::Not(HasSubstr("more (--all)")));
  report.summary.collectives.resize(53, report.summary.collectives.front());
  EXPECT_THAT(report_text(report), HasSubstr("\n  ... and 41 more (--all)\n"));
  EXPECT_THAT(report_text(report, true), testing::Not(HasSubstr("more (--all)")));
}

TEST(ReportText, GivesMetricsTheirUnits) {
  Report report = full_report();
  report.metrics["memory_peak_bytes"] = 486e6;
  report.metrics["parameters_per_device"] = 4.65925e+08;
  EXPECT_THAT(report_text(report), HasSubstr("memory_peak 486.0 MB\n"));
  EXPECT_THAT(report_text(report), HasSubstr("parameters_per_device 465.9 M\n"));
  EXPECT_EQ(count_text(9999), "9999");
  EXPECT_EQ(count_text(999'960), "1.0 M");
  EXPECT_EQ(count_text(-25'000), "-25.0 k");
  EXPECT_EQ(count_text(0.9777164), "0.977716");
}

TEST(ReportText, SaysBeforeEveryFigureThatTheRunWasDisturbed) {
  Report report = full_report();
  report.machine_use = MachineUse{.cores = 2, .time = 500, .own = 980, .waited = 20, .others = 30};
  EXPECT_THAT(report_text(report), HasSubstr("machine     2.0 % of the processor time that the run asked for went"));
  EXPECT_THAT(report_text(report), testing::Not(HasSubstr("DISTURBED")));
  report.machine_use->own = 180;
  const std::string text = report_text(report);
  EXPECT_LT(text.find("DISTURBED: 10.0 % of the processor time"), text.find("step time"));
}

TEST(ReportText, SaysWhatHeldAGpuBackAndWhoElseWorkedOnIt) {
  Report report = full_report();
  report.machine_use = MachineUse{.cores = 2, .time = 500, .own = 1000};
  report.machine_use->gpus = {
      {.gpu = "GPU 0", .readings = 100, .slowed = 5, .slowed_by = {"heat", "the power supply"}}};
  EXPECT_FALSE(report.is_disturbed()) << "not more than one reading in 20";
  EXPECT_THAT(lost_text(*report.machine_use),
              HasSubstr("; GPU 0 was held back by heat and the power supply in 5 of 100 readings"));
  report.machine_use->gpus[0].slowed = 6;
  EXPECT_TRUE(report.is_disturbed());
  report.machine_use->gpus = {{.gpu = "GPU 1", .readings = 100, .other_programs = 2, .others_share = 0.05}};
  EXPECT_FALSE(report.is_disturbed());
  report.machine_use->gpus[0].others_share = 0.0625;
  EXPECT_TRUE(report.is_disturbed());
  EXPECT_THAT(lost_text(*report.machine_use), HasSubstr("; 2 other programs on GPU 1 took 6.2 % of its time"));
  EXPECT_THAT(report_text(report), HasSubstr("DISTURBED: 0.0 % of the processor time"));
}

TEST(ReportText, NamesTheBusiestOfTheDevicesThatTrainNothing) {
  Report report = full_report();
  EXPECT_THAT(report_text(report), testing::Not(HasSubstr("train no replica")));
  report.summary.other_devices = OtherDevices{.busiest = "/job:ps/replica:0/task:1/device:CPU:0",
                                              .count = 2,
                                              .per_step = {.update = 500'000, .idle = 1'500'000}};
  EXPECT_THAT(report_text(report), HasSubstr("on /job:ps/replica:0/task:1/device:CPU:0, the busiest of 2 that train no "
                                             "replica: 500.0 us of\nupdate (25.0 %), 1.500 ms of idle (75.0 %)\n"));
}

TEST(ReportText, FitsATerminal) {
  Report report = full_report();
  report.settings["network/optim"] = "Full";
  for (int i = 0; i < 12; ++i) report.settings["network/setting " + std::to_string(i)] = "a value";
  report.notes = {
      "a long caveat that goes on and on about a range of sizes that nobody has measured on this machine "
      "and is therefore extrapolated from the ones that somebody did measure"};
  std::istringstream lines(report_text(report) + comparisons_text({compare(full_report(), report)}) +
                           comparisons_text({compare(full_report(), report), compare(full_report(), report)}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 100) << line;
}

TEST(ReportText, SaysWhoTookPart) {
  Report report = full_report();
  report.replicas = 6;
  report.workers = 3;
  report.parameter_servers = 1;
  EXPECT_THAT(report_text(report), testing::HasSubstr(": 6 replicas on 3 workers and 1 parameter server, mirrored"));
  report.asynchronous = true;
  EXPECT_THAT(report_text(report), testing::HasSubstr("   21.3333 per step of each worker\n"));
}

TEST(ReportText, SaysWhatExecutedACollective) {
  Report report = full_report();
  report.summary.collectives[0].algorithm = "NVLS tree Simple, 16 channels";
  EXPECT_THAT(report_text(report), HasSubstr(": NVLS tree Simple, 16 channels\n"));
}

TEST(ReportText, LeavesOutWhatThereIsNot) {
  Report report;
  report.scenario = "bare";
  const std::string text = report_text(report);
  EXPECT_THAT(text, testing::Not(HasSubstr("loss")));
  EXPECT_THAT(text, testing::Not(HasSubstr("collectives")));
  EXPECT_THAT(text, testing::Not(HasSubstr("nan")));
  EXPECT_THAT(text, HasSubstr("bare: 1 replica\n"));
}

}  // namespace
}  // namespace tandem
