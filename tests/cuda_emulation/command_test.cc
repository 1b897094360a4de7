// `tandem` on emulated GPUs, from the scenario to the report.
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class EmulatedCommand : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    setenv("TANDEM_EMULATED_DELAY_SEED", "4", 1);
  }
  void TearDown() override {
    for (const char* name : {"TANDEM_EMULATED_GPUS", "TANDEM_EMULATED_DELAY_SEED"}) unsetenv(name);
    CommandLine::TearDown();
  }
  // The example, on GPUs of a machine that has some.
  nlohmann::json train_digits(const std::string& engine) const {
    std::ifstream file(example("digits.yaml"));
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto replace = [&](const std::string& part, const std::string& other) {
      text.replace(text.find(part), part.size(), other);
    };
    if (engine == "cuda") {
      replace("topology: this machine", "topology: hgx-h100");
      replace("type: cpu", "type: gpu");
    }
    const Outcome outcome = tandem({"run", write("digits.yaml", text), "--engine", engine, "--steps", "20", "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.json();
  }
  void expect_losses_of_the_cpu_engine(const nlohmann::json& report) const {
    const auto expected = train_digits("cpu")["loss"];
    const auto& actual = report["loss"];
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual[i].get<double>(), expected[i].get<double>(), 1e-5 * expected[i].get<double>()) << i;
    }
  }
};

TEST_F(EmulatedCommand, TrainsDigitsOnOneGpuAsOnTheCpu) {
  const auto report = train_digits("cuda");
  expect_losses_of_the_cpu_engine(report);
  EXPECT_THAT(report["settings"]["gpus"].get<std::string>(), HasSubstr("emulated GPU"));
  EXPECT_EQ(report["settings"]["collectives"], "copies and add kernels (2 logical devices on GPU 0)");
}

TEST_F(EmulatedCommand, TrainsDigitsOnTwoGpusByNccl) {
  setenv("TANDEM_EMULATED_GPUS", "2", 1);
  const auto report = train_digits("cuda");
  expect_losses_of_the_cpu_engine(report);
  EXPECT_EQ(report["settings"]["collectives"], "NCCL on GPUs 0, 1");
}

TEST_F(EmulatedCommand, SlowsAGpuDownWhenAsked) {
  setenv("TANDEM_EMULATED_GPUS", "2", 1);
  const std::string file =
      write("slow.yaml",
            "schema_version: 1\nname: slow\nworkload: {kind: layers, model: layers_small, batch: 4}\n"
            "strategy: {name: mirrored}\nengine: {name: cuda}\ndevices: {type: gpu, per_worker: 2}\nsteps: 3\n"
            "faults:\n  - slow: {device: \"worker:0/GPU:1\", factor: 2}\n");
  EXPECT_EQ(tandem({"run", file}).exit_code, 3);
  const Outcome outcome = tandem({"run", file, "--inject"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("WITH FAULTS worker:0/GPU:1 takes 2 times as long\n"));
}

// The example names devices of type cpu, for the engine that it names.
TEST_F(EmulatedCommand, AnEngineOfGpusComputesOnThemUnlessItIsToldOtherwise) {
  const std::vector<std::string> command = {"run", example("digits.yaml"), "--engine", "cuda", "--json", "--steps",
                                            "12"};
  const Outcome on_gpus = tandem(command);
  ASSERT_EQ(on_gpus.exit_code, 0) << on_gpus.err;
  EXPECT_THAT(on_gpus.json()["notes"],
              testing::ElementsAre(HasSubstr("shared: 2 logical devices are on 1 GPU of one machine"),
                                   HasSubstr("computed on GPUs, the default of engine 'cuda'")));
  EXPECT_EQ(on_gpus.json()["settings"]["collectives"], "copies and add kernels (2 logical devices on GPU 0)");
  std::vector<std::string> on_host = command;
  on_host.insert(on_host.end(), {"--device-type", "cpu"});
  const Outcome asked_for = tandem(on_host);
  ASSERT_EQ(asked_for.exit_code, 0) << asked_for.err;
  EXPECT_TRUE(asked_for.json()["notes"].empty());
  EXPECT_FALSE(asked_for.json()["settings"].contains("collectives"));
}

#ifdef TANDEM_ON_RANKS
// Processes of one machine, each with two replicas.
class EmulatedRanks : public EmulatedCommand {
 protected:
  // Trains on `gpus` GPUs, which all processes see.
  nlohmann::json train_on_ranks(int ranks, int gpus) const {
    setenv("TANDEM_EMULATED_GPUS", std::to_string(gpus).c_str(), 1);
    const std::string launch = "exec " TANDEM_ON_RANKS " " TANDEM_MPIEXEC " " TANDEM_MPIEXEC_NUMBER " ";
    const std::string report = write("report.json", "");
    const int status =
        std::system((launch + std::to_string(ranks) + " " TANDEM_BINARY " run " + example("digits-multi-worker.yaml") +
                     " --engine mpi --device-type gpu --steps 12 -q --json -o " + report + " >/dev/null")
                        .c_str());
    if (WEXITSTATUS(status) == 77) return {};
    EXPECT_EQ(WEXITSTATUS(status), 0);
    std::ifstream file(report);
    return nlohmann::json::parse(file);
  }
  void expect_losses_of_one_process(const nlohmann::json& report) const {
    const auto expected =
        tandem({"run", example("digits-multi-worker.yaml"), "--engine", "cpu", "--steps", "12", "--json"}).json();
    ASSERT_EQ(report["loss"].size(), 12U);
    for (std::size_t i = 0; i < 12; ++i) {
      const double loss = expected["loss"][i];
      EXPECT_NEAR(report["loss"][i].get<double>(), loss, 1e-5 * loss) << i;
    }
  }
};

TEST_F(EmulatedRanks, TrainByNcclWhereEachDeviceHasAGpu) {
  const auto report = train_on_ranks(2, 4);
  if (report.is_null()) GTEST_SKIP() << "no rank can be launched";
  expect_losses_of_one_process(report);
  EXPECT_EQ(report["settings"]["ranks"], "2 on 1 host");
  EXPECT_EQ(report["settings"]["collectives"], "NCCL on 4 GPUs of 2 processes");
  EXPECT_TRUE(report["notes"].empty()) << report["notes"];
}

TEST_F(EmulatedRanks, TrainThroughHostMemoryWhereDevicesShareGpus) {
  const auto report = train_on_ranks(2, 3);
  if (report.is_null()) GTEST_SKIP() << "no rank can be launched";
  expect_losses_of_one_process(report);
  EXPECT_EQ(report["settings"]["collectives"], "MPI through host memory (4 logical devices of 2 processes on 3 GPUs)");
  EXPECT_THAT(report["notes"], testing::ElementsAre(HasSubstr("shared: 4 logical devices are on 3 GPUs, up to 2")));
}

TEST_F(EmulatedRanks, OfOneTrainAsOneProcessDoes) {
  const auto report = train_on_ranks(1, 2);
  if (report.is_null()) GTEST_SKIP() << "no rank can be launched";
  expect_losses_of_one_process(report);
  EXPECT_EQ(report["settings"]["ranks"], "1");
}
#endif

}  // namespace
}  // namespace tandem
