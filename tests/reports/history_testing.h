#pragma once

#include "reports/checks/history.h"

namespace tandem {

inline HistoryLaunch launch_of(Nanoseconds median) {
  return {.scenario = "digits",
          .scenario_hash = "1f2e",
          .engine = "an engine",
          .machine = "a machine",
          .commit = "0123456789abcdef",
          .date = "2026-11-22T12:00:00Z",
          .tandem_version = "0.1.0",
          .step_time = {.mean = median,
                        .median = median,
                        .min = median,
                        .p95 = median,
                        .median_absolute_deviation = 1,
                        .samples = 9}};
}

}  // namespace tandem
