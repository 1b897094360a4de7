#include "reports/compare.h"

#include <nlohmann/json.hpp>

#include "reports/json_fields.h"
#include "reports/report_json.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json error_or_null(const std::optional<double>& error) {
  return error ? Json(*error) : Json(nullptr);
}

Json collectives_to_json(const std::vector<ComparedCollective>& collectives) {
  Json list = Json::array();
  for (const ComparedCollective& collective : collectives) {
    list.push_back({{"operation", collective.operation},
                    {"bytes", collective.bytes},
                    {"devices", collective.devices},
                    {"measured_ns", collective.measured},
                    {"predicted_ns", collective.predicted},
                    {"error", error_or_null(collective.error)}});
    if (collective.is_extrapolated) list.back()["extrapolated"] = *collective.is_extrapolated;
  }
  return list;
}

Json bands_to_json(const std::vector<SizeBand>& bands) {
  Json list = Json::array();
  for (const SizeBand& band : bands) {
    list.push_back({{"operation", band.operation},
                    {"from_bytes", band.from_bytes},
                    {"to_bytes", band.to_bytes},
                    {"count", band.count},
                    {"median_error", band.median_error},
                    {"p95_error", band.p95_error}});
  }
  return list;
}

Json comparison_to_json(const Comparison& comparison) {
  Json errors = Json::object();
  for (const ComparedFigure& figure : comparison.figures) errors[figure.name] = error_or_null(figure.error);
  Json json;
  json["scenario"] = comparison.measured.scenario;
  json["replicas"] = comparison.measured.replicas;
  json["cross_device_ops"] = comparison.measured.cross_device_ops;
  json["noise"] = comparison.noise;
  json["disturbed"] = !comparison.disturbance.empty();
  if (!comparison.disturbance.empty()) json["disturbance"] = comparison.disturbance;
  json["errors"] = std::move(errors);
  json["collectives"] = collectives_to_json(comparison.collectives);
  json["size_bands"] = bands_to_json(comparison.bands);
  json["loss_max_relative_difference"] = error_or_null(comparison.loss_max_relative_difference);
  json["notes"] = comparison.notes;
  json["measured"] = report_to_json(comparison.measured);
  json["predicted"] = report_to_json(comparison.predicted);
  return json;
}

Comparison comparison_of(const JsonField& entry) {
  const Report measured = report_from_field(entry.required("measured"));
  const Report predicted = report_from_field(entry.required("predicted"));
  std::string disturbance = text_or_empty(entry, "disturbance");
  const JsonField disturbed = entry.optional("disturbed");
  const bool is_unknown = disturbance.empty() && disturbed.present() && disturbed.boolean();
  if (is_unknown) disturbance = "the calibration was disturbed";  // an earlier version did not say by what
  return compare(measured, predicted, disturbance);
}

}  // namespace

std::vector<Comparison> comparisons_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  std::vector<Comparison> comparisons;
  const JsonField entries = reading.root().required("comparisons");
  for (const JsonField& entry : entries.items()) comparisons.push_back(comparison_of(entry));
  if (comparisons.empty() && entries.present()) entries.error("has no entry");
  reading.finish();
  return comparisons;
}

nlohmann::ordered_json comparisons_to_json(const std::vector<Comparison>& comparisons) {
  Json json = document_of("comparison");
  json["comparisons"] = Json::array();
  for (const Comparison& comparison : comparisons) json["comparisons"].push_back(comparison_to_json(comparison));
  return json;
}

}  // namespace tandem
