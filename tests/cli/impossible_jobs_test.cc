// Jobs that a simulated machine cannot do: the input is wrong, so the exit code is 3.
#include <tuple>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ImpossibleJobs : public CommandLine {
 protected:
  // Two GPUs at one processor; `figures` are those of the GPUs.
  void write_machine(const std::string& figures, bool is_joined = true) const {
    write("machine.yaml", "schema_version: 1\nname: two\ndevice_models:\n  gpu: {" + figures +
                              "}\n  cpu: {peak_flops: {f32: 1TFLOPS}, memory_bandwidth: 50GB/s}\n"
                              "link_models: {pcie: {kind: pcie, bandwidth: 10GB/s, latency: 1us}}\n"
                              "nodes:\n  - {name: cpu0, kind: cpu, device: cpu}\n"
                              "  - {name: gpu0, kind: gpu, device: gpu}\n  - {name: gpu1, kind: gpu, device: gpu}\n"
                              "links:\n  - {from: cpu0, to: gpu0, model: pcie}\n" +
                              (is_joined ? "  - {from: cpu0, to: gpu1, model: pcie}\n" : ""));
  }
  Outcome run(const std::string& dtype = "f32") const {
    write("job.yaml", "schema_version: 1\nworkload: {kind: layers, model: resnet50, batch: 1024, dtype: " + dtype +
                          "}\nstrategy: {name: mirrored}\nengine: {name: sim}\ntopology: ./machine.yaml\n"
                          "devices: {type: gpu, per_worker: 2}\nsteps: 3\nwarmup_steps: 1\n");
    return tandem({"run", "job.yaml", "-q"});
  }
  static void expect_refusal(const Outcome& outcome, const std::string& message) {
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    EXPECT_THAT(outcome.err, testing::StartsWith(message));
    EXPECT_EQ(outcome.out, "");
  }
};

TEST_F(ImpossibleJobs, DevicesLackTheRateOfAnElementType) {
  write_machine("peak_flops: {f32: 10TFLOPS}, memory_bandwidth: 1TB/s");
  expect_refusal(run("bf16"), "job.yaml:5:11: topology: device model 'gpu' has no bf16 rate: give it peak_flops for");
}

TEST_F(ImpossibleJobs, DevicesHaveTooLittleMemory) {
  write_machine("peak_flops: {f32: 10TFLOPS}, memory_bandwidth: 1TB/s, memory: 1GB");
  expect_refusal(run(), "job.yaml:2:11: workload: a device needs ");
}

TEST_F(ImpossibleJobs, NoLinksJoinTheDevices) {
  write_machine("peak_flops: {f32: 10TFLOPS}, memory_bandwidth: 1TB/s", false);
  expect_refusal(run(), "job.yaml:5:11: topology: topology 'two': no path from '");
  const Outcome collective =
      tandem({"collectives", "all_reduce", "--topology", "machine.yaml", "-b", "1K", "-e", "1K"});
  EXPECT_EQ(collective.exit_code, 3);
  EXPECT_THAT(collective.err, HasSubstr("tandem: topology 'two': no path from 'gpu0' to 'gpu1'\n"));
}

TEST_F(ImpossibleJobs, AStepTakesLongerThanRecordsHold) {
  write_machine("peak_flops: {f32: 1kFLOPS}, memory_bandwidth: 1kB/s, op_overhead: 1day");
  EXPECT_EQ(run().exit_code, 3) << "no such unit";
  write_machine("peak_flops: {f32: 1kFLOPS}, memory_bandwidth: 1kB/s");
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, testing::AnyOf(HasSubstr("job.yaml:5:11: topology: the simulated time passes 292 years"),
                                          HasSubstr("job.yaml:5:11: topology: op '")));
}

TEST_F(ImpossibleJobs, FiguresThatNoMachineHasAreRefusedWhereTheyAreRead) {
  write_machine(
      "architecture: sm_90, multiprocessors: 132, boost_clock: 1e-300, peak_flops: {f32: 10TFLOPS}, "
      "memory_bandwidth: 1TB/s");
  expect_refusal(run(), "./machine.yaml:4:");
  EXPECT_THAT(run().err, HasSubstr("device_models.gpu.boost_clock: must be from 1 kHz to 1 THz, found 1e-300\n"));
}

// Results that were edited since.
class EditedResults : public CommandLine {
 protected:
  // Replaces what follows `mark` up to the next comma or brace.
  static std::string edited(std::string text, const std::string& mark, const std::string& value) {
    const std::size_t begin = text.find(mark) + mark.size();
    return text.replace(begin, text.find_first_of(",}\n", begin) - begin, value);
  }
};

TEST_F(EditedResults, OfSweepsAreRefused) {
  write("small.yaml",
        "schema_version: 1\nworkload: {kind: mlp, batch: 64, hidden: [16]}\nstrategy: {name: mirrored}\n"
        "engine: {name: sim}\ntopology: dgx1-v100\ndevices: {type: gpu, per_worker: 2}\nsteps: 3\nwarmup_steps: 1\n"
        "sweep: {values: {workload.batch: [64, 128]}}\n");
  ASSERT_EQ(tandem({"sweep", "small.yaml", "--results", "kept.jsonl", "-q"}).exit_code, 0);
  for (const auto& [mark, value, says] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"\"value\":", "null", "throughput.value: expected a number"},
           {"\"value\":", "-5", "throughput.value: must not be negative"},
           {"\"value\":", "\"nan\"", "throughput.value: expected a number"},
           {"\"step_time_ns\":", "-1", "step_time_ns: expected a whole number of 0 or more"}}) {
    write("edited.jsonl", edited(read("kept.jsonl"), mark, value));
    const Outcome outcome = tandem({"sweep", "small.yaml", "--no-results", "--merge", "edited.jsonl"});
    EXPECT_EQ(outcome.exit_code, 3) << value;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("edited.jsonl:2"), HasSubstr(says)));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(EditedResults, OfRunsAreRefusedOrShownAsUnknown) {
  const Outcome run = tandem({"run", example("resnet50-4x-hgx-h100.yaml"), "--json", "-q"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  write("report.json", edited(run.out, "\"replicas\": ", "0"));
  EXPECT_THAT(tandem({"report", "report.json"}).err, HasSubstr("replicas: must be at least 1"));
  write("report.json", edited(run.out, "\"algbw\": ", "null"));
  const Outcome unknown = tandem({"report", "report.json", "--all"});
  EXPECT_EQ(unknown.exit_code, 0) << unknown.err;
  EXPECT_THAT(unknown.out, testing::Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace tandem
