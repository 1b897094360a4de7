// How often the files of a command are opened.
#include "cli/base/load.h"
#include "scenarios/import/base/input_file.h"
#include "scenarios/reading/scenario_flags.h"
#include "scenarios/sweep/sweep_space.h"
#include "tests/cli/command_line.h"

namespace tandem {
namespace {

class InputFiles : public CommandLine {
 protected:
  // Returns how many files `act` opens.
  template <typename Act>
  static std::int64_t opened_by(Act act) {
    const std::int64_t before = InputFile::opened();
    act();
    return InputFile::opened() - before;
  }
  std::string write_config() const {
    const std::string config =
        R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "vocab_size": 128256,
            "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8})";
    write("config.json", config);
    return (folder() / "config.json").string();
  }
  std::string write_scenario(const std::string& model, const std::string& more = "") const {
    write("scenario.yaml", "schema_version: 1\nworkload: {kind: layers, model: " + model +
                               ", batch: 64}\nengine: {name: sim}\ntopology: hgx-h100\nsteps: 3\n" + more);
    return (folder() / "scenario.yaml").string();
  }
};

// To see what it is, for each number of machines that is tried, and for the model of the scenario that it becomes.
TEST_F(InputFiles, AConfigurationIsOpenedOnce) {
  const std::string file = write_config();
  EXPECT_EQ(opened_by([&] { EXPECT_GT(scenario_from(file).topology->worker_count(), 1); }), 1);
}

TEST_F(InputFiles, AScenarioAndItsModelAreOpenedOnce) {
  write_config();
  for (const char* model : {"resnet50", "./config.json"}) {
    const std::string file = write_scenario(model);
    Scenario scenario;
    EXPECT_EQ(opened_by([&] { scenario = scenario_from(file); }), 2) << model;
    EXPECT_EQ(opened_by([&] { EXPECT_EQ(with_flags(scenario, {.steps = "4"}).steps, 4); }), 0) << model;
  }
}

TEST_F(InputFiles, ThePointsOfASweepOpenNothing) {
  write_config();
  const std::string file =
      write_scenario("./config.json", "sweep: {values: {workload.batch: [8, 16, 32, 64], steps: [2, 3]}}\n");
  const Scenario base = scenario_from(file);
  EXPECT_EQ(opened_by([&] {
              const SweepSpace space(base);
              SharedParts parts = space.parts();
              EXPECT_EQ(space.points().size(), 8U);
              for (const SweepSpace::Point& point : space.points()) space.scenario(point, parts);
            }),
            0);
}

}  // namespace
}  // namespace tandem
