#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// With a quick calibration of a machine that tests keep busy: they look at the table, not at its errors.
class CompareCommand : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    const Outcome outcome = tandem({"calibrate", "--quick", "--devices", "2", "-o", "machine.yaml"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ASSERT_THAT(outcome.out, testing::IsEmpty());
    ASSERT_THAT(outcome.err, HasSubstr("collectives measured"));
  }
};

TEST_F(CompareCommand, MeasuresPredictsAndShowsTheErrors) {
  const std::vector<std::string> command = {"compare",    write_small_scenario(), "--steps",    "12",
                                            "--topology", "machine.yaml",         "--replicas", "2"};
  const Outcome outcome = tandem(command);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"measured (cpu)", "simulated (sim)", "error", "step time", "noise of the measured run"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST_F(CompareCommand, PrintsBothReportsOfEveryVariantAsJson) {
  const Outcome outcome = tandem({"compare", write_small_scenario(), "--topology", "machine.yaml", "--replicas", "1,2",
                                  "--cross-device-ops", "nccl,reduction_to_one_device", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto comparisons = outcome.json()["comparisons"];
  ASSERT_EQ(comparisons.size(), 4u);
  EXPECT_EQ(comparisons[3]["replicas"], 2);
  EXPECT_EQ(comparisons[3]["cross_device_ops"], "reduction_to_one_device");
  for (const auto& comparison : comparisons) {
    EXPECT_EQ(comparison["measured"]["engine"], "cpu");
    EXPECT_EQ(comparison["predicted"]["engine"], "sim");
    const double measured = comparison["measured"]["step_time_ns"]["median"];
    const double predicted = comparison["predicted"]["step_time_ns"]["median"];
    EXPECT_NEAR(comparison["errors"]["step_time"], predicted / measured - 1, 1e-9);
  }
}

TEST_F(CompareCommand, RefusesAMachineFileThatIsNotOne) {
  write("broken.yaml", "schema_version: 1\nnodes: 3\n");
  const Outcome outcome = tandem({"compare", write_small_scenario(), "--topology", "broken.yaml"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("broken.yaml:2"));
}

}  // namespace
}  // namespace tandem
