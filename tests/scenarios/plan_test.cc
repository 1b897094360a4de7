// Plans: the best point of random spaces is that of an exhaustive search, and the certificate holds.
//
// TANDEM_PLANNED_SPACES=N draws N spaces instead of the few of every day.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "reports/plan/plan_json.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/plan_space.h"
#include "scenarios/plan/point_text.h"
#include "scenarios/reading/scenario_document.h"
#include "scenarios/sweep/sweep_space.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::ElementsAre;

struct PlannedSpace {
  std::string model = "gpt", sizes = "{layers: 8, hidden: 1024, heads: 16, tokens: 512}";
  std::string workload{}, strategy{};  // more keys of them
  std::string machine = "hgx-h100", fabric{};
  int workers = 2, batch = 32;

  // Without a sweep.
  std::string text() const {
    return fmt::format(
        "name: planned\n"
        "workload: {{kind: layers, model: {}{}, dtype: bf16, optimizer: adam, batch: {}{}}}\n"
        "strategy: {{name: mesh, {}data: {}}}\nengine: {{name: sim}}\n"
        "topology: {{cluster: {{node: {}, workers: {}{}}}}}\n"
        "devices: {{type: gpu, workers: {}, per_worker: 4}}\nsteps: 2\nwarmup_steps: 1\n",
        model, sizes.empty() ? "" : ", sizes: " + sizes, batch, workload, strategy, 4 * workers, machine, workers,
        fabric, workers);
  }
};

Scenario with_usual_space(const PlannedSpace& space, const SpaceChoices& choices = {}) {
  const Scenario base = read_scenario(space.text());
  return parse_scenario("schema_version: 1\n" + space.text(), base.file,
                        {{"the space", "sweep", usual_space(base, choices)}});
}

PlanTable plan(const Scenario& scenario, const PlanOptions& options) {
  PlanTable table = planned_points(scenario, options);
  run_plan(scenario, options, table);
  return table;
}

// Returns the values of all points, as runs of them give these, infinite for those that cannot run.
std::vector<double> all_values(const Scenario& scenario) {
  const SweepSpace space(scenario);
  SharedParts parts = space.parts();
  std::vector<double> values;
  for (const SweepSpace::Point& point : space.points()) {
    values.push_back(std::numeric_limits<double>::infinity());
    try {
      const Scenario one = space.scenario(point, parts);
      const Report report = run_scenario(one, {.measures_scaling = false, .only_report = true}).report;
      if (!report.memory || report.memory->is_within()) values.back() = 1 / report.throughput();
    } catch (const Error&) {  // it does not fit, or cannot be
    }
  }
  return values;
}

// Some points of a usual space, for an exhaustive search in little time.
PlannedSpace random_space(std::mt19937& random) {
  const auto of = [&random](const auto& choices) { return choices[random() % std::size(choices)]; };
  PlannedSpace space;
  space.machine = of(std::vector<std::string>{"hgx-h100", "dgx-a100", "gb200-nvl72", "pcie-8gpu"});
  space.workers = of(std::vector{1, 2, 4});
  space.batch = of(std::vector{8, 24, 64});
  space.fabric = space.workers > 1 ? of(std::vector<std::string>{"",
                                                                 ", fabric: {kind: leaf_spine, workers_per_leaf: 2, "
                                                                 "spines: 2, oversubscription: 4}"})
                                   : "";
  if (random() % 4 == 0) {
    space.model = "mixtral";
    space.sizes = "{layers: 4, hidden: 512, heads: 8, intermediate: 1024, tokens: 512}";
  } else if (random() % 4 == 0) {
    space.model = "resnet32";
    space.sizes = "";
  }
  return space;
}

int spaces_of_the_day(int usual) {
  const char* const asked = std::getenv("TANDEM_PLANNED_SPACES");
  return asked == nullptr ? usual : std::atoi(asked);
}

// Leaves out fields at random until few points are left.
Scenario with_few_points(const PlannedSpace& space, std::mt19937& random) {
  constexpr std::size_t kFewPoints = 40;
  const Scenario base = read_scenario(space.text());
  std::string sweep = usual_space(base, {});
  for (int thinned = 2;; ++thinned) {
    Scenario scenario =
        parse_scenario("schema_version: 1\n" + space.text(), base.file, {{"the space", "sweep", sweep}});
    const std::size_t points = SweepSpace(scenario).points().size();
    if (points <= kFewPoints) return scenario;
    // A condition that most points do not meet, whatever their fields are.
    const std::string rest = fmt::format("(data * 3 + tensor * 5 + pipeline * 7 + micro_batches * 11) % {} == {}",
                                         thinned, random() % static_cast<unsigned>(thinned));
    sweep = usual_space(base, {});
    sweep.insert(sweep.rfind(']'), ", \"" + rest + "\"");
  }
}

TEST(PlanSearch, FindsTheBestOfRandomSpaces) {
  std::mt19937 random(37);
  std::size_t points = 0, simulated = 0;
  for (int i = 0; i < spaces_of_the_day(8); ++i) {
    const PlannedSpace space = random_space(random);
    Scenario scenario;
    try {
      scenario = with_few_points(space, random);
    } catch (const InputError&) {  // no point at all
      continue;
    }
    SCOPED_TRACE(fmt::format("{}{}", space.text(), space_text(scenario)));
    const PlanTable table = plan(scenario, {.processes = 2, .wanted = 1});
    const std::vector<double> values = all_values(scenario);
    const double best = *std::ranges::min_element(values);
    for (std::size_t place = 0; place < values.size(); ++place)
      EXPECT_LE(table.least(place), values[place] * (1 + 1e-6)) << "point " << place;
    points += values.size();
    simulated += table.simulated();
    if (table.ranking().empty()) {
      EXPECT_EQ(best, std::numeric_limits<double>::infinity());
      continue;
    }
    EXPECT_EQ(table.value(table.ranking().front()), best);
    EXPECT_EQ(table.gap(), 0);
    EXPECT_EQ(table.stopped, "");
  }
  EXPECT_LT(simulated, points / 3);
}

TEST(PlanSearch, IsTheSameWhateverTheProcesses) {
  const Scenario scenario = with_usual_space({.batch = 16}, {.strategies = {"mesh"}});
  const PlanTable one = plan(scenario, {.processes = 1, .wanted = 3});
  for (const int processes : {2, 5})
    EXPECT_EQ(plan_to_json(plan(scenario, {.processes = processes, .wanted = 3})), plan_to_json(one)) << processes;
  EXPECT_LT(one.simulated(), one.sweep.points.size() / 5);
}

TEST(PlanSearch, PromisesTheTimeOfARun) {
  const Scenario scenario = with_usual_space({}, {});
  const PlanTable table = plan(scenario, {.processes = 2, .wanted = 1});
  const std::size_t best = table.ranking().at(0);
  ASSERT_TRUE(table.planned[best].is_whole);
  const Scenario chosen =
      parse_scenario(text_of_point(scenario, best, std::filesystem::path(scenario.file).parent_path()), scenario.file);
  EXPECT_EQ(run_scenario(chosen, {.only_report = true}).report.summary.step_time.mean,
            table.sweep.points[best].step_time);
}

TEST(PlanSearch, LeavesOutWhatNeedsSlightlyMoreThanADeviceHas) {
  const auto best_with = [](const std::string& memory) {
    const Scenario scenario = with_usual_space({.fabric = memory}, {.strategies = {"mesh"}});
    const PlanTable table = plan(scenario, {.processes = 2, .wanted = 1});
    return table.sweep.points[table.ranking().at(0)];
  };
  const SweptPoint best = best_with("");
  const auto memory = [&best](double share) {
    return fmt::format(", overrides: {{gpu: {{memory: {:.0f}B}}}}", share * static_cast<double>(best.memory->total()));
  };
  EXPECT_EQ(best_with(memory(1.001)).values, best.values);
  const SweptPoint other = best_with(memory(0.99));
  EXPECT_NE(other.values, best.values);
  EXPECT_TRUE(other.memory->is_within());
}

TEST(PlanSearch, TheUsualSpaceHasWhatTheModelAllows) {
  const auto fields = [](const PlannedSpace& space, const SpaceChoices& choices = {}) {
    return SweepSpace(with_usual_space(space, choices)).fields();
  };
  EXPECT_THAT(fields({.workers = 1}, {.strategies = {"fully_sharded"}}),
              ElementsAre("strategy.name", "workload.gradient_accumulation_steps", "workload.activation_checkpointing",
                          "devices.reserved"));
  PlannedSpace sharded;
  sharded.strategy = "shard_parameters: true, ";
  EXPECT_THAT(fields(sharded, {.strategies = {"mesh"}}),
              testing::Not(testing::Contains("strategy.distributed_optimizer")));
  EXPECT_THAT(fields({.model = "mixtral", .sizes = "{layers: 4}"}), testing::Contains("strategy.expert"));
  EXPECT_THAT(fields({}), testing::Not(testing::Contains("strategy.expert")));
  EXPECT_THAT(fields({}), testing::Contains("strategy.axis_order"));
  EXPECT_THAT(fields({.workers = 1}), testing::Not(testing::Contains("strategy.axis_order"))) << "NVLink joins all";
  EXPECT_THAT(fields({.workers = 4}, {.machines = {{.per_worker = 4, .workers = {1, 2, 4}}}}),
              testing::Contains("devices.workers"));
}

// Eight GPUs are two machines of four of one kind, or one of eight of the other.
TEST(PlanSearch, ChoosesAmongMachines) {
  const Scenario scenario =
      with_usual_space({.machine = "dgx-a100"}, {.strategies = {"mesh"},
                                                 .machines = {{.node = "dgx-a100", .per_worker = 4, .workers = {2}},
                                                              {.node = "hgx-h100", .per_worker = 8, .workers = {1}}}});
  const PlanTable table = plan(scenario, {.processes = 2, .wanted = 1});
  std::set<std::vector<std::string>> machines;
  for (const SweptPoint& point : table.sweep.points) {
    std::vector<std::string> machine;
    for (const auto& [field, value] : point.values) {
      if (field.starts_with("topology") || field.starts_with("devices.w") || field.starts_with("devices.p"))
        machine.push_back(value);
    }
    machines.insert(machine);
  }
  EXPECT_THAT(machines, ElementsAre(ElementsAre("dgx-a100", "2", "4"), ElementsAre("hgx-h100", "1", "8")));
  const auto& best = table.sweep.points[table.ranking().at(0)].values;
  EXPECT_THAT(best, testing::Contains(std::pair<std::string, std::string>("topology.cluster.node", "hgx-h100")));
  EXPECT_EQ(table.gap(), 0);
}

}  // namespace
}  // namespace tandem
