#include "reports/report.h"

#include <cmath>

namespace tandem {

std::string_view version() {
  return TANDEM_VERSION;
}

namespace {

double rate(double units, const StepTime& time) {
  const double step_s = static_cast<double>(time.median) * 1e-9;
  return step_s > 0 && std::isfinite(units) ? units / step_s : 0;
}

}  // namespace

double Report::throughput() const {
  if (!asynchronous || summary.workers.empty()) return rate(units_per_step, summary.step_time);
  double sum = 0;
  for (const StepTime& time : summary.workers) sum += rate(units_per_step / workers, time);
  return sum;
}

}  // namespace tandem
