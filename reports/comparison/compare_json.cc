#include "reports/comparison/compare.h"

#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"

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

Json bands_to_json(const std::vector<ComparedBand>& bands) {
  Json list = Json::array();
  for (const ComparedBand& band : bands) {
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
  json["disturbed"] = comparison.is_disturbed();
  if (comparison.is_disturbed()) json["disturbance"] = comparison.disturbance;
  if (comparison.is_disturbed()) json["calibration_disturbance"] = comparison.calibration_disturbance;
  json["errors"] = std::move(errors);
  if (const auto usual = is_usual(comparison)) json["is_usual"] = *usual;
  if (const auto part = deciding_part(comparison)) {
    json["deciding_part"] = {{"name", part->name}, {"of_step", part->of_step}};
  }
  json["collectives"] = collectives_to_json(comparison.collectives);
  json["size_bands"] = bands_to_json(comparison.bands);
  json["loss_max_relative_difference"] = error_or_null(comparison.loss_max_relative_difference);
  if (comparison.evaluated_loss_max_relative_difference) {
    json["evaluated_loss_max_relative_difference"] = *comparison.evaluated_loss_max_relative_difference;
  }
  json["notes"] = comparison.notes;
  json["measured"] = report_to_json(comparison.measured);
  json["predicted"] = report_to_json(comparison.predicted);
  return json;
}

// Returns what disturbed the calibration. Earlier versions wrote it in front of what disturbed the run, or only whether
// anything was disturbed.
std::string calibration_disturbance_of(const JsonField& entry, const Report& measured) {
  if (const JsonField field = entry.optional("calibration_disturbance"); field.present()) return field.text();
  const std::string both = text_or_empty(entry, "disturbance");
  const JsonField disturbed = entry.optional("disturbed");
  if (!measured.is_disturbed()) {
    const bool is_unknown = both.empty() && disturbed.present() && disturbed.boolean();
    return is_unknown ? "the calibration was disturbed" : both;
  }
  const std::size_t end = both.find("; " + lost_text(*measured.machine_use));
  return end == std::string::npos ? "" : both.substr(0, end);
}

Comparison comparison_of(const JsonField& entry) {
  const Report measured = report_from_field(entry.required("measured"));
  const Report predicted = report_from_field(entry.required("predicted"));
  return compare(measured, predicted, calibration_disturbance_of(entry, measured));
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
