#include "reports/run/known_errors.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"

namespace tandem {
namespace {

constexpr const char* kBandsKind = "error_bands";

double rounded_percentile(double p95) {
  return std::round(p95 * 1000) / 1000;
}

double percentile_from_json(const JsonField& field) {
  const double p95 = field.number();
  if (field.present() && p95 <= 0) field.error("must be greater than 0");
  return p95;
}

PredictionGroup group_from_json(const JsonField& field) {
  const std::string name = field.text();
  const auto groups = prediction_groups();
  const auto found = std::ranges::find_if(groups, [&](PredictionGroup group) { return name_of(group) == name; });
  if (found != groups.end()) return *found;
  if (field.present()) field.error("'" + name + "' is no group of published training runs");
  return PredictionGroup::one_device;
}

}  // namespace

const KnownErrors& known_errors() {
  static const KnownErrors errors = [] {
    const JsonOrigin origin("reports/data/error_bands.json", error_bands_file());
    return known_errors_from_json(origin.parse(), origin);
  }();
  return errors;
}

nlohmann::ordered_json known_errors_to_json(const KnownErrors& errors) {
  nlohmann::ordered_json calibrated = nlohmann::ordered_json::array(), published = calibrated;
  for (const CalibratedErrors& one : errors.calibrated) {
    calibrated.push_back(
        {{"short_of_cores", one.is_short_of_cores}, {"launches", one.launches}, {"p95", rounded_percentile(one.p95)}});
  }
  for (const GroupErrors& one : errors.published) {
    published.push_back({{"group", name_of(one.group)},
                         {"fitted", one.is_fitted},
                         {"rows", one.rows},
                         {"sources", one.sources},
                         {"band", rounded_percentile(one.band)},
                         {"of_all", one.is_of_all}});
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
    errors.published.push_back({.group = group_from_json(item.required("group")),
                                .is_fitted = item.required("fitted").boolean(),
                                .rows = item.required("rows").positive_count(),
                                .sources = item.required("sources").positive_count(),
                                .band = percentile_from_json(item.required("band")),
                                .is_of_all = item.required("of_all").boolean()});
  }
  reading.finish();
  return errors;
}

}  // namespace tandem
