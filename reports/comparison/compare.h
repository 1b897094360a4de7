// Compares a measured report with a predicted one: how far apart every figure is, and how noisy the measurement was.
//
// An error is predicted / measured - 1: +5 % says that the prediction is 5 % above the measurement.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/base/json_document.h"
#include "reports/run/report.h"

namespace tandem {

struct ComparedFigure {
  std::string name;  // "step_time", "throughput", "evaluation" (where both have some), "compute", "communication", ...
  double measured = 0;  // nanoseconds, or units per second
  double predicted = 0;
  std::optional<double> error;  // empty when the measured figure is 0, and if the run was disturbed
};

// A collective that both reports have, with equal operation, bytes and devices.
struct ComparedCollective {
  std::string operation;
  std::int64_t bytes = 0;
  int devices = 0;
  Nanoseconds measured = 0;
  Nanoseconds predicted = 0;
  std::optional<double> error;
  std::optional<bool> is_extrapolated{};  // beyond the sizes of the calibration; empty: no calibration is known
};

// Absolute errors of the collectives of one operation between two sizes.
struct ComparedBand {
  std::string operation;
  std::int64_t from_bytes = 0;  // included
  std::int64_t to_bytes = 0;    // excluded
  int count = 0;
  double median_error = 0;
  double p95_error = 0;
};

struct Comparison {
  Report measured;
  Report predicted;
  std::vector<ComparedFigure> figures;  // step_time first
  std::vector<ComparedCollective> collectives;
  std::vector<ComparedBand> bands;
  // Largest |predicted - measured| / |measured| over the steps for which both have a loss.
  std::optional<double> loss_max_relative_difference;
  std::optional<double> evaluated_loss_max_relative_difference{};  // likewise over evaluations after equal steps
  std::string calibration_disturbance{};  // what disturbed the calibration, in words; empty: nothing, or it is unknown
  std::string disturbance{};              // that, and what disturbed the measured run
  double noise = 0;                       // median absolute deviation / median of the measured step times
  std::vector<std::string> notes;         // what does not match, or is in only one of the reports

  bool is_disturbed() const { return !disturbance.empty(); }  // then it has no errors
  bool has_parts() const;  // whether both know the parts of a step; else these figures are 0, without an error
  // Returns the figure of that name, which must be one of `figures`.
  const ComparedFigure& figure(std::string_view name) const;
};

// A part of a step and how far it is off. The one that is farthest off in the direction of the step's error decides
// that.
struct DecidingPart {
  std::string name;  // "exposed communication"
  double of_step;    // (predicted - measured) / measured step time
};

// Returns how far each part of the step is off; none for a disturbed comparison, or one without parts.
std::vector<DecidingPart> part_differences(const Comparison& comparison);

// Return nothing for a comparison without an error or parts of a step, or whose prediction has no band.
std::optional<DecidingPart> deciding_part(const Comparison& comparison);
std::optional<bool> is_usual(const Comparison& comparison);  // whether the error is within the prediction's band

// Compares two reports. `calibration_disturbance` says what disturbed the calibration that the prediction rests on;
// empty: nothing. If that or the measured run was disturbed there are no errors, since they would say nothing about the
// model.
Comparison compare(const Report& measured, const Report& predicted, const std::string& calibration_disturbance = "");

// Makes one document with both reports and the errors of each comparison (docs/reports.md).
nlohmann::ordered_json comparisons_to_json(const std::vector<Comparison>& comparisons);

// Returns the comparisons of a document. Throws InputError with everything that is missing or wrong.
std::vector<Comparison> comparisons_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

// Formats comparisons for people. Several begin with a table that has a line for each. Then follows the headline of the
// last one: step time, throughput, and the parts that take at least a tenth of the step in either run. With `details`,
// every part and collective of every comparison follows instead.
std::string comparisons_text(const std::vector<Comparison>& comparisons, bool details = false);

}  // namespace tandem
