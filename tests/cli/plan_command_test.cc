// tandem plan: questions as people ask them, and what the answers promise.
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Plan : public CommandLine {
 protected:
  // A small GPT on one or two machines of 8 GPUs; `more`: further lines, such as a sweep.
  std::string write_gpt(const std::string& more = "", int machines = 1, const std::string& of_topology = "") const {
    return write("small.yaml", fmt::format("schema_version: 1\n"
                                           "workload: {{kind: layers, model: gpt, batch: 32, dtype: bf16, sizes: "
                                           "{{hidden: 256, heads: 8, tokens: 128, layers: 4}}}}\n"
                                           "strategy: {{name: mesh, data: {2}, micro_batches: 2}}\n"
                                           "engine: {{name: sim}}\n"
                                           "topology: {{{1}cluster: {{node: hgx-h100, workers: {0}}}}}\n"
                                           "devices: {{type: gpu, workers: {0}, per_worker: 8}}\n"
                                           "steps: 2\nwarmup_steps: 1\n{3}",
                                           machines, of_topology, 8 * machines, more));
  }
  static std::string sweep() {
    return "sweep:\n"
           "  values:\n"
           "    strategy.data: [1, 2, 4, 8]\n"
           "    strategy.tensor: [1, 2, 4, 8]\n"
           "    strategy.pipeline: [1, 2, 4]\n"
           "    strategy.micro_batches: [1, 2, 4]\n"
           "  where: [data * tensor * pipeline == devices]\n";
  }
  static std::string docs_example(const std::string& name) { return TANDEM_SOURCE_DIR "/docs/examples/" + name; }

  // The values of the best point, of which the command must be certain.
  nlohmann::json best_of(const std::vector<std::string>& arguments) const {
    const Outcome outcome = tandem(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const nlohmann::json plan = outcome.json();
    EXPECT_EQ(plan["gap"], 0);
    return plan["points"][plan["best"][0].get<std::size_t>()];
  }
};

TEST_F(Plan, FindsWhatASweepOfAllPointsFinds) {
  write_gpt(sweep());
  const auto swept = tandem({"sweep", "small.yaml", "--json", "--no-results"}).json();
  const auto best = best_of({"plan", "small.yaml", "--json"});
  EXPECT_EQ(best["values"], swept["points"][swept["best"].get<std::size_t>()]["values"]);
}

TEST_F(Plan, SaysWhatItFoundAndProved) {
  write_gpt(sweep());
  const Outcome outcome = tandem({"plan", "small.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith("small: the best of 27 points for time, on engine sim\nbest: data "),
                                 HasSubstr("\ncertain: no point of this space takes less\n"), HasSubstr("\npoints: "),
                                 HasSubstr(" simulated, "), HasSubstr(" ruled out by their bounds\n"),
                                 HasSubstr("\nas it is, the scenario takes ")));
}

TEST_F(Plan, SearchesTheUsualSpaceOfAScenarioWithoutASweep) {
  const auto best = best_of({"plan", write_gpt(), "--json"});
  EXPECT_EQ(best["devices"], 8);
  EXPECT_TRUE(best["values"].contains("strategy.name"));
  EXPECT_TRUE(best["whole"]);
}

TEST_F(Plan, LeavesMemoryForWhatIsNoTensor) {
  const auto reserved = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan", write_gpt(), "--strategies", "mesh", "--best", "1", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return best_of(arguments)["memory_bytes"].value("reserved", 0.0);
  };
  EXPECT_GT(reserved({}), 1.5e9);
  EXPECT_EQ(reserved({"--set", "devices.reserved.bytes=3GB"}), 3e9);
}

TEST_F(Plan, TakesModelFilesOfOtherPrograms) {
  const Outcome outcome = tandem({"plan", docs_example("config.json"), "--topology", "hgx-h100", "--devices", "8",
                                  "--batch", "8", "--sequence-length", "512", "--best", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("tandem: assumed: optimizer adam (--optimizer)\n"));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("on 8 devices"), HasSubstr("certain: "), Not(HasSubstr("as it is"))));
}

TEST_F(Plan, TakesBatchesThatTheGpusDoNotDivide) {
  const auto best = best_of({"plan", docs_example("config.json"), "--devices", "16", "--batch", "4",
                             "--sequence-length", "512", "--strategies", "mesh", "--best", "1", "--json"});
  EXPECT_EQ(best["devices"], 16);
}

TEST_F(Plan, TakesTheArgumentsOfMegatron) {
  const Outcome outcome =
      tandem({"plan", docs_example("train.sh"), "--strategies", "mesh", "--best", "1", "--within", "60"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith("train: the best of "), HasSubstr("\nas it is, the scenario takes ")));
}

TEST_F(Plan, ChoosesAmongTheStrategiesThatAreNamed) {
  const auto plan = tandem({"plan", write_gpt(), "--strategies", "fully_sharded,mirrored", "--json"}).json();
  for (const auto& point : plan["points"]) {
    EXPECT_THAT(point["strategy"].get<std::string>(), testing::AnyOf("fully_sharded", "mirrored"));
    EXPECT_EQ(point["values"].count("strategy.data"), 0u);
  }
  EXPECT_FALSE(plan.contains("as_it_is"));  // a mesh, which is not among them
  EXPECT_EQ(plan["counts"]["cannot_run"], 0);
}

TEST_F(Plan, TakesTheNumberOfDevicesFromARange) {
  const auto plan = tandem({"plan", write_gpt(), "--devices", "8..32", "--strategies", "fully_sharded", "--json"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  std::set<int> devices;
  const auto points = plan.json()["points"];
  for (const auto& point : points) devices.insert(point["devices"].get<int>());
  EXPECT_EQ(devices, (std::set<int>{8, 16, 32}));
}

// Sixteen GPUs are two machines of eight, or four of four.
TEST_F(Plan, ChoosesAmongMachines) {
  const auto plan =
      tandem({"plan", docs_example("config.json"), "--topology", "gb200-nvl72,hgx-h100", "--devices", "16", "--batch",
              "16", "--sequence-length", "512", "--strategies", "mesh", "--best", "1", "--json"})
          .json();
  std::set<std::string> machines;
  for (const auto& point : plan["points"]) {
    const auto& values = point["values"];
    machines.insert(fmt::format("{} {} {}", values["topology.cluster.node"].get<std::string>(),
                                values["devices.workers"].get<std::string>(),
                                values["devices.per_worker"].get<std::string>()));
    EXPECT_EQ(point["devices"], 16);
  }
  EXPECT_THAT(machines, testing::ElementsAre("gb200-nvl72 4 4", "hgx-h100 2 8"));
  EXPECT_EQ(plan["gap"], 0);
  EXPECT_EQ(plan["counts"]["cannot_run"], 0);
}

TEST_F(Plan, PlansAgainForWhatMayBeBetter) {
  write_gpt(sweep());
  const auto plan =
      tandem({"plan", "small.yaml", "--best", "1", "--what-if", "machine", "--what-if", "workload.batch=64", "--json"})
          .json();
  EXPECT_EQ(plan["what_if"].size(), 4u);
  for (const auto& other : plan["what_if"])
    EXPECT_LE(other["value"].get<double>(), plan["value"].get<double>()) << other["change"];
  EXPECT_FALSE(plan["by_hand"].empty());
  for (const auto& change : plan["by_hand"]) EXPECT_FALSE(change["fields"].empty());
}

TEST_F(Plan, TakesOtherDevicesThanTheMeshOfTheScenario) {
  const auto best = best_of({"plan", write_gpt(), "--devices", "2", "--best", "1", "--json"});
  EXPECT_EQ(best["devices"], 2);
}

TEST_F(Plan, TakesABatchThatTheStrategyOfTheScenarioCannotDivide) {
  write_gpt();
  const auto best = best_of({"plan", "small.yaml", "--set", "strategy={name: mirrored}", "--devices", "64", "--batch",
                             "16", "--strategies", "mesh", "--best", "1", "--json"});
  EXPECT_EQ(best["devices"], 64);
  EXPECT_EQ(best["strategy"], "mesh");
}

TEST_F(Plan, WritesTheBestPointAsAJobOfMegatron) {
  write_gpt();
  const Outcome outcome = tandem({"plan", "small.yaml", "--strategies", "mesh", "--set",
                                  "workload.stack={fusion: hand, attention: flash}", "--set", "workload.optimizer=adam",
                                  "--best", "1", "--json", "--scenario", "best.sh", "--format", "megatron"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("tandem: not said: workload.model is query_key_value, "));
  const auto plan = outcome.json();
  const auto values = plan["points"][plan["best"][0].get<std::size_t>()]["values"];
  const std::string script = read("best.sh");
  EXPECT_THAT(script, HasSubstr(fmt::format("  --tensor-model-parallel-size {}\n  --pipeline-model-parallel-size {}\n",
                                            values["strategy.tensor"].get<std::string>(),
                                            values["strategy.pipeline"].get<std::string>())));
  const Outcome run = tandem({"run", "best.sh", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(Plan, RefusesABestPointThatTheProgramDoesNotHave) {
  write_gpt();
  const Outcome outcome = tandem({"plan", "small.yaml", "--strategies", "mirrored", "--best", "1", "--scenario",
                                  "best.sh", "--format", "megatron"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("\nbest: "));
  EXPECT_THAT(outcome.err, HasSubstr("strategy.name: Megatron-LM has no strategy 'mirrored'; it has what mesh and "
                                     "fully_sharded do (`tandem plan` with --strategies mesh,fully_sharded)\n"));
  const Outcome alone = tandem({"plan", "small.yaml", "--format", "megatron"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--format requires --scenario"));
}

// One machine costs half of what two cost, and makes more of its time.
TEST_F(Plan, FindsTheCheapest) {
  write_gpt("", 2, "price: 98 $/h, ");
  const Outcome outcome =
      tandem({"plan", "small.yaml", "--devices", "8..16", "--for", "cost", "--strategies", "fully_sharded"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr(" points for cost, "), HasSubstr("best: workers 1, "),
                                 HasSubstr(" $ per million sequences, limited by")));
}

// Half as many machines take longer, and less energy.
TEST_F(Plan, FindsWhatTakesLeastEnergy) {
  write_gpt("", 2, "power: 9kW, ");
  const std::vector<std::string> arguments = {"plan",         "small.yaml",    "--devices", "8..16",
                                              "--strategies", "fully_sharded", "--best",    "1"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto best = best_of(with({"--for", "energy", "--json"}));
  EXPECT_EQ(best["devices"], 8);
  EXPECT_NEAR(best["rates"]["energy_per_step_j"].get<double>(), 9000 * best["step_time_ns"].get<double>() / 1e9, 1e-6);
  EXPECT_THAT(tandem(with({"--for", "energy"})).out,
              AllOf(HasSubstr("Wh per million sequences"), HasSubstr(" ruled out by their bounds")));
}

// What --dry-run prints is a file for --space.
TEST_F(Plan, SearchesTheSpaceOfAFile) {
  write_gpt();
  const Outcome usual = tandem({"plan", "small.yaml", "--strategies", "mesh", "--dry-run", "-o", "space.yaml"});
  EXPECT_EQ(usual.exit_code, 0) << usual.err;
  const std::string space = read("space.yaml");
  EXPECT_THAT(space, StartsWith("sweep:\n  values:\n    strategy.name: [mesh]\n"));
  const Outcome again = tandem({"plan", "small.yaml", "--space", "space.yaml", "--dry-run"});
  EXPECT_EQ(again.out, space);
  EXPECT_EQ(best_of({"plan", "small.yaml", "--space", "space.yaml", "--best", "1", "--json"})["values"],
            best_of({"plan", "small.yaml", "--strategies", "mesh", "--best", "1", "--json"})["values"]);
}

// Quotes of keys and texts remain.
TEST_F(Plan, WritesScenariosAndSpacesThatCanBeReadAgain) {
  write_gpt(
      "description: 'A GPT: small, {really}'\n"
      "sweep:\n"
      "  values:\n"
      "    strategy.micro_batches: [1, 2]\n"
      "    topology.cluster.overrides.\"*.nic5\".slowdown: [1, 2]\n"
      "    description: ['a, b', \"c: d\"]\n"
      "  where: [\"'mesh' == strategy\"]\n");
  const auto best = best_of({"plan", "small.yaml", "--best", "1", "--json", "--scenario", "best.yaml"});
  const Outcome run = tandem({"run", "best.yaml", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["step_time_ns"]["mean"], best["step_time_ns"]);
  const Outcome space = tandem({"plan", "small.yaml", "--dry-run", "-o", "space.yaml"});
  EXPECT_EQ(space.exit_code, 0) << space.err;
  EXPECT_EQ(tandem({"plan", "small.yaml", "--space", "space.yaml", "--dry-run"}).out, read("space.yaml"));
  EXPECT_THAT(read("space.yaml"), testing::EndsWith("# 8 points\n"));
}

TEST_F(Plan, TellsWhichSpaceItSearchesWhereTheScenarioHasOne) {
  write_gpt(sweep());
  const Outcome other = tandem({"plan", "small.yaml", "--batch", "64", "--dry-run"});
  EXPECT_EQ(other.err, "tandem: the usual space is searched, not the scenario's `sweep:`, which --space searches\n");
  EXPECT_THAT(other.out, HasSubstr("    strategy.name: ["));
  const Outcome own = tandem({"plan", "small.yaml", "--space", "small.yaml", "--batch", "64", "--dry-run"});
  EXPECT_EQ(own.err, "");
  EXPECT_THAT(own.out, testing::EndsWith("# 27 points\n"));
}

TEST_F(Plan, EndsInTimeWithWhatIsKnown) {
  const Outcome outcome = tandem({"plan", write_gpt(), "--within", "0"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.out, HasSubstr("\nno best point is known; the time is up (0 s)\n"));
}

// Points whose bounds rule nothing out, because their devices wait for the host. Later where none has ended by then.
TEST_F(Plan, ShowsWhatIsKnownWhenItIsInterrupted) {
  write_gpt(
      "sweep: {values: {workload.spread: [0.1], workload.sizes.layers: [48], strategy.micro_batches: [4], "
      "workload.bucket_bytes: {from: 1000000, to: 60000000, step: 100000}}}\n");
  Outcome outcome;
  for (double after_s = 0.5; outcome.out.empty(); after_s *= 1.5) {
    ASSERT_LT(after_s, 30);
    outcome = tandem_interrupted({"plan", "small.yaml", "--best", "1", "-j", "1"}, after_s);
    ASSERT_EQ(outcome.exit_code, 130) << outcome.err;
  }
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith("small: the best of 591 points "),
                    HasSubstr("\nno point of this space takes less than "), HasSubstr(" not looked at to the end\n")));
  EXPECT_THAT(outcome.err, HasSubstr("tandem: interrupted\n"));
}

TEST_F(Plan, WritesTheScenarioWhoseRunTakesWhatItPromised) {
  write_gpt(sweep());
  const auto best = best_of({"plan", "small.yaml", "--best", "1", "--json", "--scenario", "best.yaml"});
  const Outcome run = tandem({"run", "best.yaml", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["step_time_ns"]["mean"], best["step_time_ns"]);
  EXPECT_EQ(run.json()["memory_bytes"], best["memory_bytes"]);
}

// Also one that is named inside a short map.
TEST_F(Plan, WritesScenariosThatNameFilesFromTheirOwnFolder) {
  write_gpt(sweep());
  write("host.yaml", read(TANDEM_SOURCE_DIR "/topologies/catalog/hgx-h100.yaml"));
  std::filesystem::create_directory(folder() / "best");
  const auto best = best_of({"plan", "small.yaml", "--set", "topology.cluster.node=./host.yaml", "--best", "1",
                             "--json", "--scenario", "best/best.yaml"});
  const Outcome run = tandem({"run", "best/best.yaml", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["step_time_ns"]["mean"], best["step_time_ns"]);
}

TEST_F(Plan, WritesTheScenarioOfAnImportedModel) {
  write("config.json", read(docs_example("config.json")));
  const auto best = best_of({"plan", "config.json", "--sequence-length", "512", "--strategies", "mesh", "--best", "1",
                             "--json", "--scenario", "best.yaml"});
  const Outcome run = tandem({"run", "best.yaml", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["step_time_ns"]["mean"], best["step_time_ns"]);
}

TEST_F(Plan, SimulatesNoPointAgainThatIsInTheResults) {
  write_gpt(sweep());
  const std::vector<std::string> arguments = {"plan", "small.yaml", "--results", "points.jsonl", "--json"};
  const auto first = best_of(arguments);
  std::string kept = read("points.jsonl");
  // Another figure for the second best point, so that it can only be from the file.
  const auto plan = tandem(arguments).json();
  EXPECT_EQ(read("points.jsonl"), kept);
  const auto second = plan["points"][plan["best"][1].get<std::size_t>()];
  const std::string time = fmt::format("\"step_time_ns\":{},", second["step_time_ns"].get<std::int64_t>());
  const std::size_t at = kept.find(time);
  ASSERT_NE(at, std::string::npos) << time;
  kept.replace(at, time.size(), "\"step_time_ns\":123456789,");
  write("points.jsonl", kept);
  const Outcome again = tandem(arguments);
  EXPECT_THAT(again.out, HasSubstr("\"step_time_ns\": 123456789,"));
  EXPECT_EQ(read("points.jsonl"), kept);
}

TEST_F(Plan, WritesWhatIsKnownOfEveryPoint) {
  const auto plan = tandem({"plan", write_gpt(sweep()), "--best", "3", "--json"}).json();
  EXPECT_EQ(plan["kind"], "plan");
  EXPECT_EQ(plan["goal"], "time");
  EXPECT_EQ(plan["best"].size(), 3u);
  EXPECT_EQ(plan["value"], plan["least"]);
  EXPECT_FALSE(plan.contains("stopped"));
  const auto& counts = plan["counts"];
  EXPECT_EQ(counts["points"], 27);
  EXPECT_EQ(counts["simulated"].get<int>() + counts["ruled_out"].get<int>(), 27);
  const auto& best = plan["points"][plan["best"][0].get<std::size_t>()];
  EXPECT_NEAR(plan["value"].get<double>(), best["step_time_ns"].get<double>() / 1e9 / 32, 1e-9);
  for (const auto& point : plan["points"]) {
    EXPECT_GT(point["least_step_s"].get<double>(), 0);
    if (point["state"] != "done") continue;
    // 1 %: how far quick simulations may be from whole ones.
    EXPECT_LE(point["least_step_s"].get<double>(), 1.01 * point["step_time_ns"].get<double>() / 1e9);
  }
}

TEST_F(Plan, SaysWhatLacksLeastWhereNothingFits) {
  write_gpt(sweep());
  const Outcome outcome = tandem({"plan", "small.yaml", "--set", "workload.sizes.hidden=65536"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("points: 0 simulated, 27 do not fit\n"),
                                 HasSubstr("\nno point that can run fits into memory. The one that lacks least, "),
                                 HasSubstr(" of 80.00 GB: parameters ")));
}

TEST_F(Plan, SaysWhereTheTopologyStatesNoMemory) {
  write_gpt(sweep());
  std::string machine = read(TANDEM_SOURCE_DIR "/topologies/catalog/hgx-h100.yaml");
  const std::string memory = "    memory: 80GB\n";
  machine.erase(machine.find(memory), memory.size());
  write("machine.yaml", machine);
  const Outcome outcome = tandem({"plan", "small.yaml", "--space", "small.yaml", "--topology", "machine.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nthe topology states no memory of its devices: no point was ruled out for"));
}

TEST_F(Plan, RefusesWhatTheCommandLineCannotMean) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--for", "speed"},
                                                {"--within", "-1"},
                                                {"--best", "0"},
                                                {"--batch", "0"},
                                                {"--precision", "fp4"},
                                                {"--usual-space", "--space", "x.yaml"},
                                                {"--engine", "cpu"}}) {
    std::vector<std::string> arguments = {"plan", "small.yaml"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Outcome outcome = tandem(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << words.front();
    EXPECT_THAT(outcome.err, StartsWith("tandem plan: ")) << words.front();
  }
}

}  // namespace
}  // namespace tandem
