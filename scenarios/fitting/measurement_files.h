// Reads files of measurements. The content of a file tells its kind:
//   the output of nccl-tests or `tandem collectives`, as text or JSON (reports/nccl_tests/nccl_tests_reader.h)
//   published measurements (scenarios/measurements/measurement_file.h)
//   a report of a real run (tandem run --json)
//   a topology with measured collectives (tandem calibrate)
//   the throughput of one device (scenarios/fitting/device_fit.h)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/nccl_tests/collective_table.h"
#include "scenarios/fitting/device_fit.h"

namespace tandem {

struct Measurements {
  std::vector<CollectiveTable> collectives;
  std::vector<MeasuredThroughput> throughputs;
  std::vector<std::string> disturbances{};  // what disturbed a measurement: "run.json: other programs used ..."
};

// Reads the files. Throws InputError with every problem of every file; a report of a simulation, which measures
// nothing, is a problem too.
Measurements read_measurements(const std::vector<std::filesystem::path>& paths);

}  // namespace tandem
