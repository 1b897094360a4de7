#include "cli/explore.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/base/crash_note.h"
#include "cli/base/exit_codes.h"
#include "cli/base/expectations.h"
#include "cli/base/load.h"
#include "cli/base/output.h"
#include "cli/base/progress_line.h"
#include "scenarios/import/shell/quoted_word.h"
#include "scenarios/run/explore.h"

namespace tandem {
std::string command_for(const RunFlags& flags, std::uint64_t seed) {
  std::vector<std::string> words = {"tandem", "run", shell_word(flags.scenario)};
  const auto add = [&words](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(shell_word(value));
  };
  for (const std::string& setting : flags.settings) add("--set", setting);
  const auto add_given = [&add](const char* option, const std::string& value) {
    if (!value.empty()) add(option, value);
  };
  const ScenarioFlags& changes = flags.changes;
  add_given("--engine", changes.engine);
  add_given("--topology", flags.topology);
  add_given("--complete-with", flags.import.complete_with);
  add_given("--gpu", flags.import.gpu);
  add_given("--device-type", changes.device_type);
  add_given("--replicas", changes.replicas);
  add_given("--workers", changes.workers);
  add_given("--steps", changes.steps);
  add_given("--cross-device-ops", changes.cross_device_ops);
  add_given("--values", changes.values);
  add_given("--collectives", changes.collectives);
  for (const auto& [variable, value] : changes.nccl) add("--nccl", variable + "=" + value);
  if (changes.graphs) words.emplace_back("--graphs");
  if (!changes.symmetry) words.emplace_back("--no-symmetry");
  add("--explore", "1");
  add("--schedule-seed", std::to_string(seed));
  return fmt::format("{}", fmt::join(words, " "));
}

int explore(RunFlags flags) {
  const Output output(flags.common);
  const Scenario of_file = scenario_from(flags.scenario, flags.settings);
  flags.changes.topology = topology_from(flags.topology, flags.common, flags.import);
  const Scenario scenario = with_flags(of_file, flags.changes);
  ProgressLine progress(flags.common);
  flags.run.progress = progress.of_runs(scenario.name);
  handle_crashes();
  Exploration exploration = explore_schedules(scenario, flags.run, *flags.explore, note_seed);
  progress.finish();
  if (exploration.failure) exploration.failure->command = command_for(flags, exploration.failure->seed);
  if (output.json()) {
    output.write_json(exploration_to_json(exploration));
  } else {
    output.write_text(exploration_text(exploration));
  }
  const int expectations = report_expectations(scenario.expect, exploration.unseeded);
  return exploration.failure ? kNotMet : expectations;
}

}  // namespace tandem
