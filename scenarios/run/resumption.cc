#include "scenarios/run/resumption.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "engine/base/run_phase.h"
#include "engine/engine_info.h"
#include "scenarios/faults/fault_settings.h"
#include "scenarios/faults/recovery_policy.h"
#include "scenarios/job/tasks.h"
#include "scenarios/reading/content_hash.h"
#include "strategies/base/errors.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr const char* kDirectory = "recovery.checkpoint.directory";

[[noreturn]] void refuse_key(const Scenario& scenario, const char* key, const std::string& problem) {
  throw InputError({scenario.problem_at(key, problem)});
}

std::int64_t training_number(const Scenario& scenario) {
  const std::string hash = training_hash(scenario);
  std::uint64_t number = 0;
  std::from_chars(hash.data(), hash.data() + hash.size(), number, 16);
  return static_cast<std::int64_t>(number);
}

// Whether a number that nobody saves decides what the next step does.
bool has_hidden_state(const Scenario& scenario) {
  const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  return layers != nullptr && layers->learning && layers->quantised != Quantised::none &&
         layers->recipe == ScalingRecipe::delayed;
}

// Refuses what no checkpoint has all state of.
void check_checkpoints(const Scenario& scenario) {
  const StrategyInfo& strategy = strategy_info(scenario.strategy.name);
  const CheckpointSettings& checkpoint = scenario.faults->recovery.checkpoint;
  if (!checkpoint.every_steps) {
    refuse_key(
        scenario, checkpoint.every_s ? "recovery.checkpoint.every" : kDirectory,
        fmt::format("engine '{}' saves a checkpoint after a number of steps: every: 10 steps", scenario.engine.name));
  }
  if (strategy.division) {
    refuse_key(scenario, kDirectory,
               fmt::format("strategy '{}' divides the model, and no checkpoint has the parts of all devices",
                           scenario.strategy.name));
  }
  if (parameter_servers(scenario) > 0 && scenario.strategy.updates == VariableUpdates::asynchronous &&
      training_workers(scenario) > 1) {
    refuse_key(scenario, kDirectory,
               "workers that update asynchronously are at different steps, and no checkpoint is of one; updates: sync "
               "keeps them together");
  }
  if (scenario.engine.values == ValueMode::none) {
    refuse_key(scenario, kDirectory, "tensors hold no values (engine.values), and there is nothing to save");
  }
  if (has_hidden_state(scenario)) {
    refuse_key(scenario, kDirectory, "a checkpoint has no history of scales (recipe: delayed)");
  }
}

std::optional<SavedRun> saved_run_of(const Scenario& scenario) {
  const std::string& directory = scenario.faults->recovery.checkpoint.directory;
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem) {
    refuse_key(scenario, kDirectory, fmt::format("cannot create directory {}: {}", directory, problem.message()));
  }
  std::optional<SavedRun> saved;
  try {
    saved = saved_run(directory);
  } catch (const StrategyError& error) {
    refuse_key(scenario, kDirectory, error.what());
  }
  if (!saved) return {};
  if (saved->training != training_number(scenario)) {
    refuse_key(
        scenario, kDirectory,
        fmt::format("{} is of another scenario: give it another directory, or remove that one", saved->checkpoint));
  }
  if (saved->steps >= scenario.steps) {
    refuse_key(scenario, kDirectory,
               fmt::format("{} has {} of {} steps, and nothing is left to do: remove it, or ask for more steps",
                           saved->checkpoint, saved->steps, scenario.steps));
  }
  return saved;
}

// Returns what is left after so many steps. Losses of workers that have happened do not happen again: those up to the
// next checkpoint, one of which ended the run before, and those at dates, which count from its beginning.
Scenario rest_of(const Scenario& scenario, std::int64_t steps) {
  Scenario rest = scenario;
  auto faults = std::make_shared<FaultSettings>(*scenario.faults);
  const std::int64_t next = steps + *faults->recovery.checkpoint.every_steps;
  std::erase_if(faults->fail, [next](const FailFault& fail) { return !fail.step || *fail.step <= next; });
  rest.faults = std::move(faults);
  rest.warmup_steps = static_cast<int>(
      std::min<std::int64_t>(steps + scenario.warmup_steps, std::max(scenario.steps - 1, scenario.warmup_steps)));
  return rest;
}

std::string resumption_text(const Scenario& scenario, const SavedRun& saved) {
  return fmt::format("resumed after step {} of {} from {}", saved.steps, scenario.steps, saved.checkpoint);
}

std::string note_of_rest(const std::optional<SavedRun>& saved, bool evaluates) {
  if (!saved) return "times are those of the steps since the run was started again, from the first one on";
  return fmt::format(
      "times are those of the steps since the run was started again, {} and later; losses of earlier ones are from the "
      "checkpoint{}",
      saved->steps, evaluates ? ", and what earlier evaluations found is not known" : "");
}

}  // namespace

std::optional<StepCheckpoints> step_checkpoints(const Scenario& scenario) {
  if (!scenario.faults || engine_info(scenario.engine.name).needs_topology) return {};
  const CheckpointSettings& checkpoint = scenario.faults->recovery.checkpoint;
  if (checkpoint.directory.empty()) return {};
  return StepCheckpoints{.directory = checkpoint.directory,
                         .every = checkpoint.every_steps.value_or(1),
                         .training = training_number(scenario)};
}

void refuse_interrupted(const Scenario& scenario) {
  if (!step_checkpoints(scenario)) return;
  check_checkpoints(scenario);
  if (const std::optional<SavedRun> saved = saved_run_of(scenario)) {
    refuse_key(scenario, kDirectory,
               fmt::format("{} is of a run that was interrupted, and a resumed run is no measurement: finish it with "
                           "`tandem run`, or remove the directory",
                           saved->checkpoint));
  }
}

RunResult run_with_checkpoints(const Scenario& scenario, bool may_resume, const RunRest& run) {
  check_checkpoints(scenario);
  std::vector<std::string> story;
  if (!may_resume) refuse_interrupted(scenario);
  std::optional<SavedRun> saved = saved_run_of(scenario);
  Scenario rest = saved ? rest_of(scenario, saved->steps) : scenario;
  if (saved) story.push_back(resumption_text(scenario, *saved));
  for (;;) {
    try {
      RunResult result = run(rest);
      if (story.empty()) return result;
      result.report.faults.insert(result.report.faults.begin(), story.begin(), story.end());
      result.report.notes.push_back(note_of_rest(saved, scenario.evaluation.has_value()));
      return result;
    } catch (const UnavailableError& error) {
      if (recovery_policy(scenario) != RecoveryPolicy::restart_all) throw;
      saved = saved_run_of(scenario);
      Scenario next = rest_of(scenario, saved ? saved->steps : 0);
      if (next.faults->fail.size() >= rest.faults->fail.size()) throw;  // no loss of a worker that was asked for
      story.emplace_back(error.what());
      story.push_back(saved ? resumption_text(scenario, *saved) : "started again: there was no checkpoint");
      tell_phase({.text = story.back(), .starts_again = true});
      rest = std::move(next);
    }
  }
}

}  // namespace tandem
