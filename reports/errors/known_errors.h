// The errors on which error bands rest: reports/data/error_bands.json, which is part of the program.
//
// `tandem validate --write-bands` writes those of published measurements, and tests/benchmarks/side_by_side.py those of
// a calibrated machine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "reports/base/json_document.h"
#include "reports/errors/prediction_groups.h"

namespace tandem {

// The errors of launches on a machine with CPU devices whose every figure was calibrated.
struct CalibratedErrors {
  bool is_short_of_cores = false;  // there were more devices than cores
  int launches = 0;
  double p95 = 0;  // of the absolute errors; 0.1 is 10 %
};

struct KnownErrors {
  std::vector<CalibratedErrors> calibrated{};
  std::vector<GroupErrors> published{};
};

// Returns what error_bands_file() says.
const KnownErrors& known_errors();
// Returns the text of reports/data/error_bands.json of this build.
std::string_view error_bands_file();

class JsonField;

// Intervals and percentiles are rounded to 0.1 %, as tables print them.
nlohmann::ordered_json intervals_to_json(const std::vector<ErrorInterval>& intervals);
std::vector<ErrorInterval> intervals_from_json(const JsonField& field);
nlohmann::ordered_json known_errors_to_json(const KnownErrors& errors);
// Throws InputError with everything that is missing or wrong.
KnownErrors known_errors_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

}  // namespace tandem
