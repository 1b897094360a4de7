#include "scenarios/fitting/calibration_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "reports/base/text_table.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::string band_name(double up_to_bytes) {
  return std::isfinite(up_to_bytes) ? "<= " + size_text(std::llround(up_to_bytes)) : "above";
}

// "2.1 / 13.0 % (9.2 %)": median and p95 of the sizes left out, and the median of what the links say by themselves.
std::string errors_text(const CalibratedCollective& collective, double up_to_bytes) {
  for (const CalibrationBand& band : collective.bands) {
    if (band.up_to_bytes != up_to_bytes || band.left_out == 0) continue;
    const std::string errors = fmt::format("{:.1f} / {:.1f} %", band.left_out_median * 100, band.left_out_p95 * 100);
    return band.links_median ? errors + fmt::format(" ({:.1f} %)", *band.links_median * 100) : errors;
  }
  return "-";
}

int sizes_of(const CalibratedCollective& collective) {
  int sizes = 0;
  for (const CalibrationBand& band : collective.bands) sizes += band.points;
  return sizes;
}

std::string table_text(const std::vector<CalibratedCollective>& collectives) {
  std::set<double> bands;
  for (const CalibratedCollective& collective : collectives) {
    for (const CalibrationBand& band : collective.bands) bands.insert(band.up_to_bytes);
  }
  TextTable table(1);
  std::vector<std::string> header{"collective", "devices", "machines", "from", "to", "sizes", "repaired"};
  for (const double band : bands) header.push_back(band_name(band));
  table.add(std::move(header));
  table.add_rule();
  for (const CalibratedCollective& collective : collectives) {
    std::vector<std::string> row{collective.operation,
                                 std::to_string(collective.devices),
                                 std::to_string(collective.nodes),
                                 size_text(std::llround(collective.least_bytes)),
                                 size_text(std::llround(collective.most_bytes)),
                                 std::to_string(sizes_of(collective)),
                                 std::to_string(collective.repaired)};
    for (const double band : bands) row.push_back(errors_text(collective, band));
    table.add(std::move(row));
  }
  return table.text();
}

Json band_to_json(const CalibrationBand& band) {
  const bool has_left_out = band.left_out > 0;
  return {{"up_to_bytes", std::isfinite(band.up_to_bytes) ? Json(std::llround(band.up_to_bytes)) : Json(nullptr)},
          {"points", band.points},
          {"links_median", band.links_median ? Json(*band.links_median) : Json(nullptr)},
          {"fit_median", band.fit_median},
          {"left_out", band.left_out},
          {"left_out_median", has_left_out ? Json(band.left_out_median) : Json(nullptr)},
          {"left_out_p95", has_left_out ? Json(band.left_out_p95) : Json(nullptr)}};
}

Json collective_to_json(const CalibratedCollective& collective) {
  Json bands = Json::array();
  for (const CalibrationBand& band : collective.bands) bands.push_back(band_to_json(band));
  return {{"operation", collective.operation},
          {"devices", collective.devices},
          {"nodes", collective.nodes},
          {"files", collective.files},
          {"calibrated_from_bytes", std::llround(collective.least_bytes)},
          {"calibrated_to_bytes", std::llround(collective.most_bytes)},
          {"sizes", sizes_of(collective)},
          {"repaired", collective.repaired},
          {"relative_spread", collective.relative_spread},
          {"bands", std::move(bands)}};
}

bool has_links(const CollectiveCalibration& found) {
  for (const CalibratedCollective& collective : found.collectives) {
    for (const CalibrationBand& band : collective.bands) {
      if (band.links_median) return true;
    }
  }
  return false;
}

std::string device_text(const DeviceFit& fit) {
  std::string text =
      fmt::format("devices take {:.4g} times as long for their work as their figures said\n", fit.factor);
  for (const DeviceFit::Throughput& each : fit.throughputs) {
    text += fmt::format("  {}: measured {}, simulated {} before ({}) and {} now ({})\n", each.source,
                        rate_text(each.measured, "per s"), rate_text(each.before, "per s"),
                        error_text(each.before / each.measured - 1), rate_text(each.after, "per s"),
                        error_text(each.after / each.measured - 1));
  }
  return text;
}

Json device_to_json(const DeviceFit& fit) {
  Json throughputs = Json::array();
  for (const DeviceFit::Throughput& each : fit.throughputs) {
    throughputs.push_back({{"file", each.source},
                           {"measured_per_s", each.measured},
                           {"before_per_s", each.before},
                           {"fitted_per_s", each.after}});
  }
  return {{"time_factor", fit.factor}, {"throughputs", std::move(throughputs)}};
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

std::vector<std::string> CalibrationReport::contradictions() const {
  return joined(device ? device->contradictions : std::vector<std::string>(), collectives.contradictions);
}

std::vector<std::string> CalibrationReport::notes() const {
  return joined(device ? device->notes : std::vector<std::string>(), collectives.notes);
}

std::string calibration_text(const CalibrationReport& report) {
  std::string text = report.device ? device_text(*report.device) : "";
  const CollectiveCalibration& found = report.collectives;
  if (!found.collectives.empty()) {
    text += fmt::format(
                "errors of each size predicted by the others, median / p95{}; what lies outside is extrapolated\n\n",
                has_links(found) ? " (and the median of the links alone)" : "") +
            table_text(found.collectives);
  }
  const std::vector<std::string> contradictions = report.contradictions(), notes = report.notes();
  if (!contradictions.empty() || !notes.empty()) text += "\n";
  for (const std::string& line : contradictions) text += wrapped_list("contradiction: ", words_of(line), "");
  for (const std::string& line : notes) text += wrapped_list("note: ", words_of(line), "");
  return text;
}

Json calibration_to_json(const CalibrationReport& report) {
  Json collectives = Json::array();
  for (const CalibratedCollective& collective : report.collectives.collectives) {
    collectives.push_back(collective_to_json(collective));
  }
  return {{"device", report.device ? device_to_json(*report.device) : Json(nullptr)},
          {"collectives", std::move(collectives)},
          {"disturbances", report.disturbances},
          {"contradictions", report.contradictions()},
          {"notes", report.notes()}};
}

}  // namespace tandem
