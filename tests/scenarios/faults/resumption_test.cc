// Real runs that save checkpoints: interrupted after each of their steps, they go on with the losses of an undisturbed
// run, bit for bit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "scenarios/run/runner.h"
#include "tests/scenarios/running.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kStepsToSave = 7, kStepsOfCheckpoint = 2;

const std::string kRows =
    "workload: {kind: mlp, data: digits, hidden: [16], batch: 48, learning_rate: 0.2, momentum: 0.9}\n";
const std::string kTwoWorkers =
    "strategy: {name: multi_worker_mirrored}\ndevices: {type: cpu, workers: 2, per_worker: 2}\n";

struct InterruptedRun : std::runtime_error {
  InterruptedRun() : std::runtime_error("interrupted") {}
};

class Resumption : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tandem-resumption-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string directory() const { return (folder_ / "saved").string(); }
  Scenario job(const std::string& parts, const std::string& faults = "", const std::string& policy = "",
               int steps = kStepsToSave) const {
    return read_scenario(fmt::format(
        "{}engine: {{name: cpu}}\nsteps: {}\nwarmup_steps: 1\n{}recovery: {{{}checkpoint: {{every: {} steps, "
        "directory: {}}}}}\n",
        parts, steps, faults, policy, kStepsOfCheckpoint, directory()));
  }
  static Report run(const Scenario& scenario, const RunOptions& options = {.may_resume = true}) {
    return run_scenario(scenario, options).report;
  }
  static void interrupt_after(const Scenario& scenario, int steps) {
    RunOptions options{.may_resume = true};
    options.progress = [steps](int done, int) {
      if (done == steps) throw InterruptedRun();
    };
    EXPECT_THROW(run_scenario(scenario, options), InterruptedRun);
  }
  static std::string refusal(const Scenario& scenario, const RunOptions& options = {.may_resume = true}) {
    try {
      run_scenario(scenario, options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(Resumption, AfterEachStepHasTheLossesOfAnUndisturbedRun) {
  const std::string gpt =
      "workload: {kind: layers, model: gpt_tiny, batch: 4, values: real, data: alice, optimizer: adam}\n";
  for (const std::string& parts : {
           kRows + "strategy: {name: one_device}\ndevices: {type: cpu, per_worker: 1}\n",
           kRows + "strategy: {name: mirrored}\ndevices: {type: cpu, per_worker: 2}\n",
           kRows + "strategy: {name: central_storage}\ndevices: {type: cpu, per_worker: 2}\n",
           kRows + kTwoWorkers,
           kRows + "strategy: {name: parameter_server, updates: sync}\ndevices: {type: cpu, workers: 2, ps: 1, "
                   "per_worker: 1}\n",
           gpt + "strategy: {name: mirrored}\ndevices: {type: cpu, per_worker: 2}\n",
       }) {
    SCOPED_TRACE(parts);
    const Report whole = run(job(parts));
    ASSERT_EQ(whole.loss.size(), static_cast<std::size_t>(kStepsToSave));
    EXPECT_TRUE(whole.faults.empty());
    EXPECT_FALSE(fs::exists(directory())) << "the checkpoint is deleted at the end";
    for (int steps = 1; steps < kStepsToSave; ++steps) {
      interrupt_after(job(parts), steps);
      const Report resumed = run(job(parts));
      EXPECT_EQ(resumed.loss, whole.loss) << "after " << steps;
      EXPECT_EQ(resumed.metrics, whole.metrics);
      const int saved = steps / kStepsOfCheckpoint * kStepsOfCheckpoint;
      const std::string first = resumed.faults.empty() ? "" : resumed.faults.front();
      EXPECT_THAT(first, saved == 0 ? testing::Matcher<std::string>("")
                                    : StartsWith(fmt::format("resumed after step {} of 7 from ", saved)));
      EXPECT_FALSE(fs::exists(directory()));
    }
  }
}

TEST_F(Resumption, RestartsAfterEachLossOfAWorker) {
  const Report whole = run(job(kRows + kTwoWorkers));
  for (int worker = 0; worker < 2; ++worker) {
    for (int step = 0; step < kStepsToSave; ++step) {
      SCOPED_TRACE(fmt::format("worker {} before step {}", worker, step));
      const std::string faults = fmt::format("faults: [{{fail: {{worker: {}, step: {}}}}}]\n", worker, step);
      const Report report = run(job(kRows + kTwoWorkers, faults), {.may_resume = true, .injects_faults = true});
      EXPECT_EQ(report.loss, whole.loss);
      ASSERT_EQ(report.faults.size(), 2U);
      EXPECT_THAT(report.faults[0], HasSubstr(fmt::format("task:{} was lost before step {}", worker, step)));
      EXPECT_THAT(report.faults[1],
                  testing::AnyOf(StartsWith("resumed after step "), "started again: there was no checkpoint"));
      EXPECT_FALSE(fs::exists(directory()));
    }
  }
  const std::string twice = "faults: [{fail: {worker: 1, step: 2}}, {fail: {worker: 0, step: 6}}]\n";
  const Report report = run(job(kRows + kTwoWorkers, twice), {.may_resume = true, .injects_faults = true});
  EXPECT_EQ(report.loss, whole.loss);
  EXPECT_THAT(report.faults, testing::SizeIs(4));
  // Policy `end`: the run ends with the worker, and the next one goes on.
  const Scenario ends = job(kRows + kTwoWorkers, "faults: [{fail: {worker: 1, step: 5}}]\n", "policy: end, ");
  EXPECT_THROW(run(ends, {.may_resume = true, .injects_faults = true}), UnavailableError);
  EXPECT_EQ(run(ends, {.may_resume = true, .injects_faults = true}).loss, whole.loss);
}

TEST_F(Resumption, TimesAreThoseOfTheStepsThatAreLeft) {
  const Scenario scenario = job(kRows + kTwoWorkers);
  interrupt_after(scenario, 5);
  const Report report = run(scenario);
  EXPECT_EQ(report.summary.step_time.samples, 2) << "of steps 4 to 6, the first of which warms up";
  EXPECT_THAT(report.notes, testing::Contains(HasSubstr("times are those of the steps since the run was started")));
  EXPECT_THAT(report.faults, ElementsAre("resumed after step 4 of 7 from " + directory() + "/ckpt-2"));
}

TEST_F(Resumption, IsRefusedWhereItWouldMislead) {
  const Scenario scenario = job(kRows + kTwoWorkers);
  interrupt_after(scenario, 5);
  EXPECT_THAT(refusal(scenario, {}), HasSubstr("a resumed run is no measurement"));
  EXPECT_THAT(refusal(job("workload: {kind: mlp, data: digits, hidden: [16], batch: 96}\n" + kTwoWorkers)),
              HasSubstr("is of another scenario"));
  EXPECT_THAT(refusal(job(kRows + kTwoWorkers, "", "", 4)), HasSubstr("has 4 of 4 steps, and nothing is left to do"));
  const fs::path file = fs::path(directory()) / "ckpt-2";
  fs::resize_file(file, 100);
  EXPECT_THAT(refusal(scenario), HasSubstr(file.string() + ": damaged checkpoint: it is cut off after 100 bytes"));
  fs::remove(file);
  EXPECT_THAT(refusal(scenario), HasSubstr("ckpt-2, which is not there"));
  fs::remove_all(directory());
  EXPECT_EQ(run(scenario, {}).loss.size(), static_cast<std::size_t>(kStepsToSave)) << "a whole run is a measurement";

  EXPECT_THAT(refusal(job(kRows + "strategy: {name: tensor_parallel}\ndevices: {type: cpu, per_worker: 2}\n")),
              HasSubstr("divides the model"));
  EXPECT_THAT(refusal(job(kRows + "strategy: {name: parameter_server, updates: async}\ndevices: {type: cpu, workers: "
                                  "2, ps: 1, per_worker: 1}\n")),
              HasSubstr("are at different steps"));
  const auto with_checkpoint = [](const std::string& checkpoint) {
    return read_scenario(kRows + kTwoWorkers + "engine: {name: cpu}\nsteps: 3\nrecovery: {checkpoint: {" + checkpoint +
                         "}}\n");
  };
  EXPECT_THAT(refusal(with_checkpoint("every: 5min, directory: saved")), HasSubstr("after a number of steps"));
  EXPECT_THAT(refusal(with_checkpoint("directory: saved")), HasSubstr("after a number of steps"));
}

}  // namespace
}  // namespace tandem
