// Calibrating from files of measurements: topology, report, and what is refused.
#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class CalibrateFrom : public CommandLine {
 protected:
  // What `tandem calibrate` writes of a machine with two devices.
  void write_measured() const {
    write("measured.yaml", R"(schema_version: 1
name: measured
device_models:
  cpu: {peak_flops: {f32: 10GFLOPS}, memory_bandwidth: 9GB/s}
nodes:
  - {name: cpu0, kind: cpu, device: cpu}
collectives:
  - {operation: all_reduce, devices: 2, bytes: 1KiB, time: 10us}
  - {operation: all_reduce, devices: 2, bytes: 2KiB, time: 30us}
  - {operation: all_reduce, devices: 2, bytes: 4KiB, time: 20us}
  - {operation: all_gather, devices: 8, bytes: 1GiB, time: 1ms}
)");
  }
};

TEST_F(CalibrateFrom, ATopologyGetsTheTimes) {
  write_measured();
  const Outcome outcome = tandem(
      {"calibrate", "--from", "measured.yaml", "--topology", "pcie-8gpu", "-o", "out.yaml", "--report", "out.json"});
  EXPECT_EQ(outcome.exit_code, 1) << "1 GiB in 1 ms is no PCIe";
  EXPECT_THAT(outcome.err, HasSubstr("contradiction: all_gather on 8 devices: 1 of 1 sizes are faster than the links"));
  const std::string yaml = read("out.yaml");
  EXPECT_THAT(yaml, HasSubstr("operation: all_reduce, devices: 2, bytes: 2.048kB, time: 30000ns"));
  EXPECT_THAT(yaml, HasSubstr("\"calibrated_from\": \"measured.yaml\""));
  const auto report = nlohmann::json::parse(read("out.json"));
  ASSERT_EQ(report["collectives"].size(), 2);
  EXPECT_EQ(report["collectives"][0]["operation"], "all_reduce");
  EXPECT_EQ(report["collectives"][0]["calibrated_from_bytes"], 1024);
  EXPECT_EQ(report["collectives"][0]["calibrated_to_bytes"], 4096);
  EXPECT_EQ(report["collectives"][0]["repaired"], 1);
  EXPECT_EQ(report["contradictions"].size(), 1);
}

// A table in which someone has replaced ranks and rows by "...".
TEST_F(CalibrateFrom, NamesWhatIsLeftOut) {
  const std::string log = std::string(TANDEM_SOURCE_DIR) + "/tests/reports/nccl_tests/good/elided.md";
  const Outcome outcome =
      tandem({"calibrate", "--from", log, "--topology", "hgx-h200", "-o", "calibrated.yaml", "--report", "fit.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("note: "));
  const auto notes = nlohmann::json::parse(read("fit.json"))["notes"];
  ASSERT_EQ(notes.size(), 1);
  EXPECT_THAT(notes[0].get<std::string>(), HasSubstr("elided.md: the table of all_reduce on 8 devices is not whole, "
                                                     "left out are ranks (line 8) and rows (line 16)"));
  EXPECT_THAT(read("calibrated.yaml"), HasSubstr("operation: all_reduce, devices: 8, bytes: 4.294967296GB"));
}

// Two logs of nccl-tests, 8 GPUs of one machine and 16 of two, and a throughput; the second run replaces equals.
TEST_F(CalibrateFrom, TakesWhatPeopleHave) {
  const std::string logs = std::string(TANDEM_SOURCE_DIR) + "/tests/reports/nccl_tests/good/";
  write("one-gpu.yaml", R"(schema_version: 1
throughput:
  - {workload: {kind: layers, model: resnet50, dtype: f16, batch: 256}, per_second: 2375}
)");
  const std::vector<std::string> command = {
      "calibrate", "--from", logs + "na_wrong.txt", logs + "mixed.txt", "one-gpu.yaml", "--topology",
      "dgx-a100",  "-o",     "calibrated.yaml",     "--report",         "fit.json"};
  const Outcome outcome = tandem(command);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("one-gpu.yaml: measured 2375 per s, simulated "));
  const auto report = nlohmann::json::parse(read("fit.json"));
  EXPECT_NEAR(report["device"]["throughputs"][0]["fitted_per_s"].get<double>(), 2375, 0.01);
  ASSERT_EQ(report["collectives"].size(), 2);
  EXPECT_EQ(report["collectives"][1]["devices"], 16);
  EXPECT_EQ(report["collectives"][1]["nodes"], 2);
  EXPECT_EQ(report["collectives"][1]["sizes"], 6);
  EXPECT_GT(report["collectives"][1]["bands"][0]["links_median"].get<double>(), 0) << "a cluster of two such machines";
  const std::string yaml = read("calibrated.yaml");
  EXPECT_THAT(yaml, HasSubstr("operation: all_reduce, devices: 16, nodes: 2, bytes: 1.024kB, time: 20.11us"));
  EXPECT_THAT(yaml, HasSubstr("fitted to 2375/s (one-gpu.yaml)"));
  ASSERT_EQ(tandem({"calibrate", "--from", logs + "na_wrong.txt", "--topology", "calibrated.yaml", "-o", "again.yaml"})
                .exit_code,
            0);
  const auto samples = [this](const std::string& name) {
    const std::string text = read(name);
    int count = 0;
    for (std::size_t at = text.find("operation:"); at != std::string::npos; at = text.find("operation:", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(samples("calibrated.yaml"), 12);
  EXPECT_EQ(samples("again.yaml"), 12);
}

// The times of a calibrated topology are used, and what lies outside them is said to be extrapolated.
TEST_F(CalibrateFrom, ASimulationUsesTheTimesAndSaysWhatItExtrapolates) {
  write_measured();
  ASSERT_EQ(
      tandem({"calibrate", "--from", "measured.yaml", "--topology", "dgx-a100", "-o", "out.yaml", "-q"}).exit_code, 1);
  write("small.yaml", R"(schema_version: 1
topology: out.yaml
workload: {kind: layers, model: resnet50, batch: 64}
strategy: {name: mirrored}
engine: {name: sim}
devices: {type: gpu, per_worker: 2}
steps: 3
warmup_steps: 1
)");
  const Outcome outcome = tandem({"run", "small.yaml", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.json()["notes"].dump(),
              HasSubstr("extrapolated: all_reduce on 2 devices outside the measured sizes"));
}

// A report of a real run, and the same with what others did to it.
TEST_F(CalibrateFrom, ADisturbedRunIsSaidFirstAndMarksTheResult) {
  ASSERT_EQ(tandem({"run", example("digits.yaml"), "--json", "-o", "run.json", "-q"}).exit_code, 0);
  auto report = nlohmann::json::parse(read("run.json"));
  const auto calibrate_from = [&](std::int64_t stolen_ns) {
    const std::int64_t asked_ns = 1'000'000'000;
    report["machine_use"] = {
        {"cores", 2},     {"time_ns", asked_ns},    {"own_ns", asked_ns - stolen_ns}, {"waited_ns", 0},
        {"others_ns", 0}, {"stolen_ns", stolen_ns}, {"involuntary_switches", 0},      {"frequency_hz", {0, 0}},
        {"lost", 0},      {"disturbed", false}};
    write("used.json", report.dump());
    return tandem(
        {"calibrate", "--from", "used.json", "--topology", "dgx-a100", "-o", "out.yaml", "--report", "fit.json"});
  };
  const Outcome disturbed = calibrate_from(400'000'000);
  EXPECT_TRUE(disturbed.err.starts_with("tandem: disturbed: used.json: 40.0 % of the processor time")) << disturbed.err;
  EXPECT_THAT(read("out.yaml"), HasSubstr("\"disturbed\": \"used.json: 40.0 % of the processor time"));
  EXPECT_EQ(nlohmann::json::parse(read("fit.json"))["disturbances"].size(), 1);
  const Outcome quiet = calibrate_from(0);
  EXPECT_THAT(quiet.err, testing::Not(HasSubstr("disturbed")));
  EXPECT_THAT(read("out.yaml"), testing::Not(HasSubstr("disturbed")));
}

TEST_F(CalibrateFrom, ReadsPublishedMeasurements) {
  const std::string folder = std::string(TANDEM_SOURCE_DIR) + "/tests/validation/collectives/";
  const Outcome outcome = tandem({"calibrate", "--from", folder + "dgxa100_x16_2node_hdr_ring_all_reduce.json",
                                  "--topology", "dgx-a100", "-o", "out.yaml", "--report", "fit.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(read("fit.json"));
  ASSERT_EQ(report["collectives"].size(), 1);
  EXPECT_EQ(report["collectives"][0]["devices"], 16);
  EXPECT_EQ(report["collectives"][0]["nodes"], 2);
  const Outcome unhealthy = tandem({"calibrate", "--from", folder + "h100x16_2node_dgx06_all_reduce_unhealthy.json",
                                    "--topology", "hgx-h100", "-o", "out.yaml", "-q"});
  EXPECT_THAT(unhealthy.err, HasSubstr("the machine was not healthy, as its publisher says"));
}

TEST_F(CalibrateFrom, RefusesWhatItCannotRead) {
  write("empty.yaml", "schema_version: 1\ncluster: {node: dgx-a100, workers: 2}\n");
  const Outcome outcome = tandem({"calibrate", "--from", "empty.yaml", "--topology", "dgx-a100"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("empty.yaml:1:1: holds no measured collective"));
  EXPECT_EQ(tandem({"calibrate", "--from", "missing.txt", "--topology", "dgx-a100"}).exit_code, 3);
  EXPECT_THAT(tandem({"calibrate", "--from", "empty.yaml", "--topology", "dgx-a10"}).err,
              HasSubstr("did you mean 'dgx-a100'?"));
  EXPECT_EQ(tandem({"calibrate", "--from", "empty.yaml"}).exit_code, 2) << "on which machine?";
  EXPECT_EQ(tandem({"calibrate", "--topology", "dgx-a100"}).exit_code, 2);
  EXPECT_EQ(tandem({"calibrate", "--from", "empty.yaml", "--topology", "dgx-a100", "--quick"}).exit_code, 2);
}

TEST_F(CalibrateFrom, RefusesTheReportOfASimulation) {
  ASSERT_EQ(tandem({"run", example("digits-sim.yaml"), "--json", "-o", "sim.json"}).exit_code, 0);
  const Outcome outcome = tandem({"calibrate", "--from", "sim.json", "--topology", "dgx-a100"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("sim.json:1:1: is the report of a simulation, which measures nothing"));
}

}  // namespace
}  // namespace tandem
