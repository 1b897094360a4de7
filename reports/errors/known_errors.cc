#include "reports/errors/known_errors.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"

namespace tandem {
namespace {

constexpr const char* kBandsKind = "error_bands";

double rounded(double relative) {
  return std::round(relative * 1000) / 1000;
}

double percentile_from_json(const JsonField& field) {
  const double p95 = field.number();
  if (field.present() && p95 <= 0) field.error("must be greater than 0");
  return p95;
}

// Returns which of `all` has the name that the field states; the first one if none has, which is reported.
template <typename All>
auto named_in(const All& all, const JsonField& field, const char* what) {
  const std::string name = field.text();
  for (const auto& one : all) {
    if (name_of(one) == name) return one;
  }
  if (field.present()) field.error(fmt::format("'{}' is no {}", name, what));
  return *std::begin(all);
}

}  // namespace

const KnownErrors& known_errors() {
  static const KnownErrors errors = [] {
    const JsonOrigin origin("reports/data/error_bands.json", error_bands_file());
    return known_errors_from_json(origin.parse(), origin);
  }();
  return errors;
}

nlohmann::ordered_json intervals_to_json(const std::vector<ErrorInterval>& intervals) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ErrorInterval& one : intervals) {
    json.push_back({{"level", rounded(one.level)}, {"low", rounded(one.low)}, {"high", rounded(one.high)}});
  }
  return json;
}

std::vector<ErrorInterval> intervals_from_json(const JsonField& field) {
  std::vector<ErrorInterval> intervals;
  for (const JsonField& item : field.items()) {
    const JsonField level = item.required("level");
    intervals.push_back(
        {.level = level.number(), .low = item.required("low").number(), .high = item.required("high").number()});
    const ErrorInterval& read = intervals.back();
    if (level.present() && (read.low <= -1 || read.low > read.high))
      level.error("needs a 'low' above -1 and a 'high' that is no less");
    if (level.present() && (intervals.back().level <= 0 || intervals.back().level >= 1))
      level.error("must be between 0 and 1");
  }
  return intervals;
}

nlohmann::ordered_json known_errors_to_json(const KnownErrors& errors) {
  nlohmann::ordered_json calibrated = nlohmann::ordered_json::array(), published = calibrated;
  for (const CalibratedErrors& one : errors.calibrated) {
    calibrated.push_back(
        {{"short_of_cores", one.is_short_of_cores}, {"launches", one.launches}, {"p95", rounded(one.p95)}});
  }
  for (const GroupErrors& one : errors.published) {
    published.push_back({{"of", name_of(one.of)},
                         {"figures", name_of(one.figures)},
                         {"rows", one.rows},
                         {"sites", one.sites},
                         {"widened", one.is_widened},
                         {"intervals", intervals_to_json(one.intervals)}});
  }
  return {{"kind", kBandsKind}, {"calibrated", std::move(calibrated)}, {"published", std::move(published)}};
}

KnownErrors known_errors_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  const JsonField kind = root.required("kind");
  if (kind.present() && kind.text() != kBandsKind) kind.error("must be 'error_bands'");
  reading.finish();
  KnownErrors errors;
  for (const JsonField& item : root.required("calibrated").items()) {
    errors.calibrated.push_back({.is_short_of_cores = item.required("short_of_cores").boolean(),
                                 .launches = item.required("launches").positive_count(),
                                 .p95 = percentile_from_json(item.required("p95"))});
  }
  for (const JsonField& item : root.required("published").items()) {
    errors.published.push_back({.of = named_in(all_prediction_rows(), item.required("of"), "group of predictions"),
                                .figures = named_in(figure_bases(), item.required("figures"), "basis of figures"),
                                .rows = item.required("rows").positive_count(),
                                .sites = item.required("sites").positive_count(),
                                .is_widened = item.required("widened").boolean(),
                                .intervals = intervals_from_json(item.required("intervals"))});
  }
  reading.finish();
  return errors;
}

}  // namespace tandem
