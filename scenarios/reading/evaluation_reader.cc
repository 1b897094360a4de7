#include "scenarios/reading/evaluation_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/faults/durations.h"
#include "scenarios/job/tasks.h"
#include "strategies/parallel/division.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

constexpr int kMostPasses = 1'000'000;
constexpr std::int64_t kMostStepsBetween = 1'000'000'000;

// Returns how many rows a perceptron's data set has apart; 0 for other workloads.
int rows_apart(const Scenario& scenario) {
  const auto* mlp = std::get_if<MlpSettings>(&scenario.workload.kind);
  return mlp == nullptr || mlp->rows == nullptr ? 0 : mlp->rows->rows() - training_rows(*mlp->rows);
}

int passes_over(int rows, int batch) {
  return std::max(1, (rows + batch - 1) / batch);
}

// "100 steps"
std::int64_t read_every(const YamlReader& every) {
  if (!every) return 1;
  const std::string text = every.text();
  const std::optional<std::int64_t> steps = parse_steps(text);
  if (steps && *steps >= 1 && *steps <= kMostStepsBetween) return *steps;
  if (!text.empty()) {
    every.error(fmt::format("expected 1 to {} steps, such as 100 steps, found '{}'", kMostStepsBetween, text));
  }
  return 1;
}

std::optional<EvaluationProblem> problem_of_workload(const Scenario& scenario, const StrategyInfo& strategy) {
  const WorkloadSettings& workload = scenario.workload;
  if (std::holds_alternative<TraceSettings>(workload.kind)) {
    return EvaluationProblem{"evaluation", "a trace does what was recorded, and evaluates nothing else"};
  }
  const auto* layers = std::get_if<LayersSettings>(&workload.kind);
  if (layers != nullptr && layers->learning) {
    return EvaluationProblem{
        "evaluation",
        "layers that are really computed (workload.values: real) have no data apart to evaluate on; "
        "values: none gives their times, and kind: mlp values"};
  }
  if (layers == nullptr && strategy.division) {
    return EvaluationProblem{
        "evaluation", fmt::format("strategy '{}' divides the model, which then evaluates at the end only; a strategy "
                                  "that has whole copies of it evaluates between steps",
                                  strategy.name)};
  }
  return std::nullopt;
}

std::optional<EvaluationProblem> problem_of_division(const Scenario& scenario, const StrategyInfo& strategy) {
  if (!strategy.division) return std::nullopt;
  if (!strategy.division->how->evaluates()) {
    return EvaluationProblem{"evaluation", fmt::format("strategy '{}' has none", strategy.name)};
  }
  if (scenario.evaluation->is_beside) {
    return EvaluationProblem{
        "evaluation.on", fmt::format("an evaluator needs a whole model, and strategy '{}' divides it; `on: workers` "
                                     "evaluates between steps",
                                     strategy.name)};
  }
  if (scenario.evaluation->batch != scenario.workload.batch) {
    return EvaluationProblem{"evaluation.batch",
                             fmt::format("a model that is divided evaluates batches as large as those of training: {}, "
                                         "found {} (evaluation.steps says how many)",
                                         scenario.workload.batch, scenario.evaluation->batch)};
  }
  return std::nullopt;
}

// Every device that evaluates has an example of a batch of layers, whose shapes are those of the model.
std::optional<EvaluationProblem> problem_of_size(const Scenario& scenario) {
  const EvaluationSettings& evaluation = *scenario.evaluation;
  const int rows = rows_apart(scenario);
  if (const int most = passes_over(rows, evaluation.batch); rows > 0 && evaluation.passes > most) {
    return EvaluationProblem{"evaluation.steps",
                             fmt::format("there are {} rows to evaluate on: at most {} of {}, found {}", rows, most,
                                         evaluation.batch, evaluation.passes)};
  }
  const std::int64_t devices = evaluation.is_beside ? scenario.devices.per_worker : training_devices(scenario);
  if (rows > 0 || evaluation.batch >= devices) return std::nullopt;
  return EvaluationProblem{"evaluation.batch", fmt::format("{} devices evaluate, and need an example each, found {}",
                                                           devices, evaluation.batch)};
}

std::optional<EvaluationProblem> problem_of_place(const Scenario& scenario) {
  const bool is_alone = parameter_servers(scenario) > 0 && training_workers(scenario) > 1 &&
                        scenario.strategy.updates == VariableUpdates::asynchronous;
  if (!scenario.evaluation->is_beside) {
    if (!is_alone) return std::nullopt;
    return EvaluationProblem{"evaluation.on",
                             fmt::format("workers of strategy '{}' do not wait for one another, so that there is no "
                                         "time between steps; `on: evaluator` evaluates beside them",
                                         scenario.strategy.name)};
  }
  const int machines = scenario.topology ? scenario.topology->worker_count() : 1;
  if (machines <= 1 || training_workers(scenario) < machines) return std::nullopt;
  return EvaluationProblem{"evaluation.on",
                           fmt::format("an evaluator needs a machine, and workers train on all {}; devices: {{workers: "
                                       "{}}} leaves it one",
                                       machines, machines - 1)};
}

}  // namespace

std::optional<EvaluationSettings> read_evaluation(const YamlReader& map, const Scenario& scenario) {
  if (!map) return std::nullopt;
  EvaluationSettings settings{.every_steps = read_every(map.required("every"))};
  settings.batch = map.optional("batch").integer(1, 1 << 30, scenario.workload.batch);
  const int rows = rows_apart(scenario);
  const bool has_rows = std::holds_alternative<MlpSettings>(scenario.workload.kind);
  const YamlReader passes = has_rows ? map.optional("steps") : map.required("steps");
  settings.passes = passes.integer(1, kMostPasses, passes_over(rows, std::max(1, settings.batch)));
  settings.is_beside = map.optional("on").one_of<bool>({{"workers", false}, {"evaluator", true}});
  return settings;
}

std::optional<EvaluationProblem> evaluation_problem(const Scenario& scenario) {
  const StrategyInfo* strategy = find_strategy(scenario.strategy.name);
  if (!scenario.evaluation || strategy == nullptr) return std::nullopt;
  if (auto problem = problem_of_workload(scenario, *strategy)) return problem;
  if (auto problem = problem_of_division(scenario, *strategy)) return problem;
  if (auto problem = problem_of_size(scenario)) return problem;
  return problem_of_place(scenario);
}

}  // namespace tandem
