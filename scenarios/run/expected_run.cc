#include "scenarios/run/expected_run.h"

#include "engine/engine_info.h"
#include "reports/run/expectation.h"
#include "scenarios/scenario/words.h"

namespace tandem {

void add_expectation(Report& measured, const Scenario& scenario, const ScenarioFlags& flags,
                     const RunOptions& options) {
  if (measured.deterministic || (!flags.topology && !scenario.topology)) return;
  ScenarioFlags predicting = flags;
  predicting.engine = model_engine().name;
  predicting.device_type = word_of(device_type_words(), device_type_for(scenario, flags));
  predicting.values = "";
  if (joined_job() != nullptr) predicting.workers = std::to_string(measured.workers);  // that the launch has started
  RunOptions prediction = options;
  prediction.measures_scaling = false;
  prediction.only_report = true;
  prediction.progress = {};
  try {
    const Report expected = run_scenario(with_flags(scenario, predicting), prediction).report;
    measured.expectation = expectation_of(measured, expected);
  } catch (const Error& error) {
    measured.notes.push_back(std::string("not compared with the model: ") + error.what());
  }
}

}  // namespace tandem
