// `--set KEY=VALUE` and scenarios from the standard input.
#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

constexpr const char* kJob = R"(schema_version: 1
name: job
workload: {kind: layers, model: resnet50, batch: 64, dtype: bf16}
strategy: {name: multi_worker_mirrored}
engine: {name: sim}
topology: {cluster: {node: hgx-h100, workers: 2}}
steps: 3
warmup_steps: 1
)";

class Setting : public CommandLine {
 protected:
  void SetUp() override {
    CommandLine::SetUp();
    write("job.yaml", kJob);
  }
  // Returns the job with one text in place of another.
  static std::string changed(const std::string& from, const std::string& to) {
    std::string text = kJob;
    return text.replace(text.find(from), from.size(), to);
  }
  std::string refusal(const std::string& setting) const {
    const Outcome outcome = tandem({"run", "job.yaml", "--set", setting});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }
};

TEST_F(Setting, IsTheSameAsTheTextInTheFile) {
  const std::vector<std::tuple<std::string, std::string, std::string>> changes = {
      {"workload.batch=128", "batch: 64", "batch: 128"},
      {"workload={kind: layers, model: resnet50, batch: 96, dtype: f32}", "batch: 64, dtype: bf16",
       "batch: 96, dtype: f32"},
      {"workload.bucket_bytes=5MB", "batch: 64", "batch: 64, bucket_bytes: 5MB"},
      {"engine.collectives=message", "{name: sim}", "{name: sim, collectives: message}"},
      {"topology.cluster.overrides.\"*.nic5\".slowdown=4", "workers: 2",
       "workers: 2, overrides: {\"*.nic5\": {slowdown: 4}}"},
      {"topology.cluster.overrides.w1.gpu2.slowdown=4", "workers: 2",
       "workers: 2, overrides: {w1: {gpu2: {slowdown: 4}}}"},
      {"devices.workers=1", "steps: 3", "devices: {workers: 1}\nsteps: 3"},
      {"warmup_steps=~", "warmup_steps: 1\n", ""}};
  for (const auto& [setting, from, to] : changes) {
    write("other.yaml", changed(from, to));
    const Outcome set = tandem({"run", "--set", setting, "job.yaml", "--json"});
    ASSERT_EQ(set.exit_code, 0) << setting << set.err;
    auto of_setting = set.json(), of_file = tandem({"run", "other.yaml", "--json"}).json();
    const bool names_file = setting.find("overrides") != std::string::npos;  // the figures say where they were stated
    for (auto* report : {&of_setting, &of_file}) {
      if (names_file) report->erase("scenario_hash");
    }
    EXPECT_TRUE(of_setting == of_file) << setting;
  }
}

TEST_F(Setting, TheLastOneCountsAndFlagsComeAfterIt) {
  const auto steps = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run", "job.yaml", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return tandem(words).json()["step_time_ns"]["samples"];
  };
  EXPECT_EQ(steps({"--set", "steps=5", "--set=steps=7"}), 6);
  EXPECT_EQ(steps({"--set", "steps=5", "--steps", "4"}), 3);
}

TEST_F(Setting, IsRefusedAsTheSameTextInAFile) {
  EXPECT_EQ(refusal("workload.batch=0"),
            "--set workload.batch=0: workload.batch: must be from 1 to 268435456, found 0\n");
  EXPECT_EQ(refusal("workload.batch=many"),
            "--set workload.batch=many: workload.batch: expected a whole number, found 'many'\n");
  EXPECT_EQ(refusal("workload.bucket_byte=5MB"),
            "--set workload.bucket_byte=5MB: workload: unknown key 'bucket_byte'; did you mean 'bucket_bytes'?\n");
  EXPECT_EQ(refusal("strategie.name=mesh"), "--set strategie.name=mesh: unknown key 'strategie'\n");
  EXPECT_EQ(refusal("steps.all=3"), "--set steps.all=3: 'steps' is no map that has 'all'\n");
  EXPECT_EQ(refusal("steps="), "--set steps=: has no value; '~' leaves the key out\n");
  EXPECT_EQ(refusal("steps=~"), "job.yaml:1:1: missing key 'steps'\n");
  EXPECT_THAT(refusal("steps=[1"), HasSubstr("--set steps=[1:1:1: not valid YAML"));
  EXPECT_THAT(refusal("workload={batch: 1, batch: 2}"), HasSubstr("duplicate key 'batch'"));
  EXPECT_THAT(refusal("strategy.cross_device_ops=nccl"),
              HasSubstr("--set strategy.cross_device_ops=nccl: strategy.cross_device_ops: "))
      << "found after reading";
  EXPECT_THAT(refusal("topology.cluster.overrides.\"*.nic9\".slowdown=4"), HasSubstr("did you mean '*.nic"));
  for (const char* word : {"steps", "=3"}) {
    const Outcome usage = tandem({"run", "job.yaml", "--set", word});
    EXPECT_EQ(usage.exit_code, 2);
    EXPECT_THAT(usage.err, HasSubstr("must be KEY=VALUE, such as workload.batch=64"));
  }
}

// A flag that takes the place of a value is one more setting: the reader checks it, and says the same of both.
TEST_F(Setting, FlagsAreSettingsWithNamesOfTheirOwn) {
  const std::vector<std::tuple<std::string, std::string, std::string>> refused = {
      {"--steps", "steps", "0"},
      {"--steps", "steps", "many"},
      {"--steps", "steps", "1"},  // all of them warm-up
      {"--replicas", "devices.per_worker", "0"},
      {"--workers", "devices.workers", "3"},
      {"--workers", "devices.workers", "1.5"}};
  for (const auto& [flag, path, value] : refused) {
    const Outcome outcome = tandem({"run", "job.yaml", flag, value});
    EXPECT_EQ(outcome.exit_code, 3) << flag;
    std::string message = refusal(path + "=" + value);
    const std::string name = "--set " + path + "=" + value;
    EXPECT_TRUE(message.starts_with(name)) << message;
    EXPECT_EQ(outcome.err, message.replace(0, name.size(), flag + " " + value));
  }
}

TEST_F(Setting, FlagsGiveTheReportOfTheSameFile) {
  const std::vector<std::tuple<std::vector<std::string>, std::string, std::string>> changes = {
      {{"--steps", "4"}, "steps: 3", "steps: 4"},
      {{"--workers", "1", "--replicas", "4"}, "steps: 3", "devices: {workers: 1, per_worker: 4}\nsteps: 3"},
      {{"--collectives", "message", "--nccl", "NCCL_ALGO=Ring"},
       "{name: sim}",
       "{name: sim, collectives: message, nccl: {NCCL_ALGO: Ring}}"},
      {{"--cross-device-ops", "auto", "--no-symmetry"}, "{name: sim}", "{name: sim, symmetry: off}"}};
  for (const auto& [flags, from, to] : changes) {
    write("other.yaml", changed(from, to));
    std::vector<std::string> words = {"run", "job.yaml", "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = tandem(words);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    auto of_flags = outcome.json(), of_file = tandem({"run", "other.yaml", "--json"}).json();
    EXPECT_EQ(of_flags["scenario_hash"], tandem({"run", "job.yaml", "--json"}).json()["scenario_hash"]);
    for (auto* report : {&of_flags, &of_file}) {
      for (const char* field : {"scenario_hash", "scenario_values", "notes"}) report->erase(field);
    }
    EXPECT_TRUE(of_flags == of_file) << flags.front();
  }
}

TEST_F(Setting, IsTakenByEveryCommandThatReadsAScenario) {
  EXPECT_EQ(tandem({"check", "job.yaml", "--set", "workload.batch=32", "--baseline", "b.json", "--update"}).exit_code,
            0);
  EXPECT_EQ(tandem({"check", "job.yaml", "--set", "workload.batch=32", "--baseline", "b.json"}).exit_code, 0);
  EXPECT_EQ(tandem({"check", "job.yaml", "--baseline", "b.json"}).exit_code, 1) << "another job";
  const Outcome sweep = tandem({"sweep", "job.yaml", "--set", "sweep={values: {workload.batch: [64, 128]}}", "--set",
                                "workload.dtype=f32", "--no-results", "--json"});
  ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
  EXPECT_EQ(sweep.json()["points"].size(), 2u);
  const std::string small = write_small_scenario();
  const Outcome compare =
      tandem({"compare", small, "--set", "steps=9", "--tries", "1", "--topology", calibrated_machine(), "--json"});
  EXPECT_EQ(compare.exit_code, 0) << compare.err;
  const Outcome explore = tandem({"run", small, "--engine", "sim", "--set", "steps=9", "--explore", "1"});
  EXPECT_EQ(explore.exit_code, 0) << explore.err;
}

TEST_F(Setting, ScenariosComeFromTheStandardInput) {
  const Outcome outcome = tandem_reading(kJob, {"run", "-", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json(), tandem({"run", "job.yaml", "--json"}).json());
  const Outcome set = tandem_reading(kJob, {"run", "-", "--json", "--set", "workload.batch=32"});
  EXPECT_EQ(set.json(), tandem({"run", "job.yaml", "--json", "--set", "workload.batch=32"}).json());
  EXPECT_EQ(tandem_reading(changed("batch: 64", "batch: 0"), {"run", "-"}).err,
            "<stdin>:3:50: workload.batch: must be from 1 to 268435456, found 0\n");
  EXPECT_EQ(tandem_reading("", {"run", "-"}).exit_code, 3);
  std::filesystem::create_directory(folder() / "sub");
  write("sub/machine.yaml", "schema_version: 1\nbased_on: hgx-h100\n");
  const std::string with_file = changed("{cluster: {node: hgx-h100, workers: 2}}", "./sub/machine.yaml");
  EXPECT_EQ(tandem_reading(with_file, {"run", "-"}).exit_code, 0) << "relative to the working folder";
  EXPECT_EQ(tandem_reading(changed("name: job\n", ""), {"run", "-", "--json"}).json()["scenario"], "stdin");
}

TEST_F(Setting, EveryCommandReadsTheStandardInput) {
  EXPECT_EQ(tandem_reading(kJob, {"check", "-", "--baseline", "b.json", "--update"}).exit_code, 0);
  EXPECT_EQ(tandem({"check", "job.yaml", "--baseline", "b.json"}).exit_code, 0);
  EXPECT_EQ(
      tandem_reading(std::string(kJob) + "sweep: {values: {workload.batch: [64, 128]}}\n", {"sweep", "-"}).exit_code,
      0);
  EXPECT_TRUE(exists("stdin.sweep.jsonl"));
  const std::string small = read(write_small_scenario());
  EXPECT_EQ(tandem_reading(small, {"compare", "-", "--tries", "1", "--topology", calibrated_machine()}).exit_code, 0);
  const Outcome launched = tandem_reading(small, {"check", "-", "--history", "h.jsonl"});
  EXPECT_EQ(launched.exit_code, 3);
  EXPECT_THAT(launched.err,
              HasSubstr("<stdin>: is launched by other processes, several times: write the scenario to a file"));
}

}  // namespace
}  // namespace tandem
