#include "reports/report.h"

#include <cmath>

namespace tandem {

std::string_view version() {
  return TANDEM_VERSION;
}

double Report::throughput() const {
  const double step_s = static_cast<double>(summary.step_time.median) * 1e-9;
  return step_s > 0 && std::isfinite(units_per_step) ? units_per_step / step_s : 0;
}

}  // namespace tandem
