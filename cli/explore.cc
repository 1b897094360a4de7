#include "cli/explore.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/crash_note.h"
#include "cli/exit_codes.h"
#include "cli/expectations.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/shell_word.h"
#include "scenarios/explore.h"
#include "scenarios/words.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::string word_of(DeviceType wanted) {
  for (const auto& [word, type] : device_type_words()) {
    if (type == wanted) return word;
  }
  TANDEM_UNREACHABLE("a type of device without a word");
}

}  // namespace

std::string command_for(const RunFlags& flags, std::uint64_t seed) {
  std::vector<std::string> words = {"tandem", "run", shell_word(flags.scenario)};
  const auto add = [&words](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(shell_word(value));
  };
  for (const std::string& setting : flags.settings) add("--set", setting);
  const RunOptions& run = flags.run;
  if (!run.engine.empty()) add("--engine", run.engine);
  if (!flags.topology.empty()) add("--topology", flags.topology);
  if (!flags.import.complete_with.empty()) add("--complete-with", flags.import.complete_with);
  if (!flags.import.gpu.empty()) add("--gpu", flags.import.gpu);
  if (run.device_type) add("--device-type", word_of(*run.device_type));
  if (run.replicas) add("--replicas", std::to_string(*run.replicas));
  if (run.workers) add("--workers", std::to_string(*run.workers));
  if (run.steps) add("--steps", std::to_string(*run.steps));
  if (run.cross_device_ops) add("--cross-device-ops", *run.cross_device_ops);
  if (run.values) add("--values", *run.values == ValueMode::real ? "real" : "none");
  if (run.collectives) add("--collectives", *run.collectives == CollectiveFidelity::fluid ? "fluid" : "message");
  for (const auto& [variable, value] : run.nccl) add("--nccl", variable + "=" + value);
  if (run.graphs) words.emplace_back("--graphs");
  if (!run.symmetry) words.emplace_back("--no-symmetry");
  add("--explore", "1");
  add("--schedule-seed", std::to_string(seed));
  return fmt::format("{}", fmt::join(words, " "));
}

int explore(RunFlags flags) {
  const Output output(flags.common);
  const Scenario scenario = scenario_from(flags.scenario, flags.settings);
  flags.run.topology = topology_from(flags.topology, flags.common, flags.import);
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
