// Makes the measured times of a topology's collectives from measurements of other programs, and says how good they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/nccl_tests/collective_table.h"
#include "scenarios/estimates/link_limits.h"
#include "scenarios/fitting/link_times.h"
#include "topologies/topology.h"

namespace tandem {

// Errors of predictions, |predicted / measured - 1|, for the sizes of a band.
struct CalibrationBand {
  double up_to_bytes = 0;  // included; infinite for the last band
  int points = 0;
  std::optional<double> links_median{};  // of predictions from the links alone, without any measured time
  double fit_median = 0;                 // at the points themselves; not 0 where their times contradict each other
  int left_out = 0;                      // points that were left out in turn; each lies between others
  double left_out_median = 0, left_out_p95 = 0;  // of these, each predicted from the others
};

// One collective on one number of devices and nodes.
struct CalibratedCollective {
  std::string operation;
  int devices = 0;
  int nodes = 1;
  std::vector<std::string> files;          // where its times come from
  double least_bytes = 0, most_bytes = 0;  // the calibrated range
  int repaired = 0;                        // times that were longer than one at a larger size
  double relative_spread = 0;              // median over the sizes measured more than once; 0: none was
  std::vector<CalibrationBand> bands;      // those with points
};

struct CollectiveCalibration {
  std::vector<CollectiveSample> samples;  // by operation, nodes, devices, bytes
  std::vector<CalibratedCollective> collectives;
  std::vector<std::string> contradictions;  // times that are too short for the links of the topology
  std::vector<std::string> notes;           // what was left out, and why
};

// Calibrates the collectives of `topology`, on which the times were measured, or of which it is one machine. Throws
// InputError, naming file and line, for a table that does not say of which collective it is or on how many devices, or
// that does not fit the topology. `links` may be empty; with it, a size that is left out is predicted with the help of
// the links.
CollectiveCalibration calibrate_collectives(const std::vector<CollectiveTable>& tables, const Topology& topology,
                                            const LinkTimes& links = {});

// Says which of the times of one collective are too short for the links, or returns nothing.
std::optional<std::string> contradiction_of(CollectiveKind kind, int nodes, int devices,
                                            const std::vector<CollectiveSample>& samples,
                                            const calibration::LinkLimits& limits);

}  // namespace tandem
