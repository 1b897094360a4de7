// Reads the measurements that people have. The content of a file tells which kind it is:
//   the output of nccl-tests or `tandem collectives`, as text or JSON (reports/nccl_tests_reader.h)
//   a report of a real run (tandem run --json)
//   a topology with measured collectives (tandem calibrate)
//   the throughput of one device (scenarios/calibration/device_fit.h)
#pragma once

#include <filesystem>
#include <vector>

#include "reports/collective_table.h"
#include "scenarios/calibration/device_fit.h"

namespace tandem {

struct Measurements {
  std::vector<CollectiveTable> collectives;
  std::vector<MeasuredThroughput> throughputs;
};

// Throws InputError with every problem of every file, also for a report of a simulation, which measures nothing.
Measurements read_measurements(const std::vector<std::filesystem::path>& paths);

}  // namespace tandem
