#include "scenarios/expected_run.h"

#include "engine/engine_info.h"
#include "reports/expectation.h"

namespace tandem {

void add_expectation(Report& measured, const Scenario& scenario, const RunOptions& options) {
  if (measured.deterministic || (!options.topology && !scenario.topology)) return;
  RunOptions predicting = options;
  predicting.engine = model_engine().name;
  predicting.device_type = device_type_for(scenario, options);
  predicting.values = std::nullopt;
  predicting.measures_scaling = false;
  predicting.progress = {};
  if (joined_job() != nullptr) predicting.workers = measured.workers;  // as many as the launch has started
  try {
    measured.expectation = expectation_of(measured, run_scenario(scenario, predicting).report);
  } catch (const Error& error) {
    measured.notes.push_back(std::string("not compared with the model: ") + error.what());
  }
}

}  // namespace tandem
