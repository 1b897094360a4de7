#include "cli/base/page_document.h"

#include <nlohmann/json.hpp>

#include "reports/run/report_json.h"
#include "reports/run/run_details.h"
#include "scenarios/run/collective_limits.h"

namespace tandem {

nlohmann::ordered_json details_json(const RunResult& result) {
  const Pace pace = result.report.asynchronous ? Pace::each_its_own : Pace::in_step;
  RunDetails details = run_details(result.timeline, result.report.warmup_steps, pace);
  details.bounds = collective_bounds(result);
  details.memory = result.memory;
  return run_details_to_json(details);
}

nlohmann::ordered_json with_details(const RunResult& result) {
  nlohmann::ordered_json document = report_to_json(result.report);
  document["details"] = details_json(result);
  return document;
}

}  // namespace tandem
