#include "reports/run/memory_curve.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/run/memory_json.h"

namespace tandem {

void make_coarse(MemoryCurve& curve, std::size_t most_points) {
  const std::size_t together = (curve.points.size() + most_points - 1) / most_points;
  if (together <= 1) return;
  std::vector<MemoryPoint> points;
  for (std::size_t first = 0; first < curve.points.size(); first += together) {
    const auto begin = curve.points.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end =
        curve.points.begin() + static_cast<std::ptrdiff_t>(std::min(first + together, curve.points.size()));
    points.push_back(*std::max_element(
        begin, end, [&](const MemoryPoint& a, const MemoryPoint& b) { return curve.total_at(a) < curve.total_at(b); }));
  }
  curve.points = std::move(points);
}

// A point is [at, activations, workspace, index of the moment's text].
nlohmann::ordered_json memory_curve_to_json(const MemoryCurve& curve) {
  std::map<std::string, std::size_t> texts;
  nlohmann::ordered_json moments = nlohmann::ordered_json::array(), points = nlohmann::ordered_json::array();
  for (const MemoryPoint& point : curve.points) {
    const auto [text, is_new] = texts.try_emplace(point.moment, texts.size());
    if (is_new) moments.push_back(point.moment);
    points.push_back(nlohmann::ordered_json::array({point.at, point.activations, point.workspace, text->second}));
  }
  return {{"device", curve.device},    {"step", curve.step},
          {"length_ns", curve.length}, {"peak_bytes", memory_to_json(curve.need)},
          {"moments", moments},        {"points", points}};
}

MemoryCurve memory_curve_from_json(const JsonField& field) {
  MemoryCurve curve{.device = field.required("device").text(),
                    .step = field.required("step").small_count(),
                    .length = field.required("length_ns").count(),
                    .need = memory_from_json(field.required("peak_bytes"))};
  std::vector<std::string> moments;
  for (const JsonField& moment : field.required("moments").items()) moments.push_back(moment.text());
  for (const JsonField& item : field.required("points").items()) {
    const std::vector<JsonField> parts = item.items();
    if (parts.size() != 4 || static_cast<std::size_t>(parts[3].count()) >= moments.size()) {
      item.error("must be [at, activations, workspace, moment], with one of the moments");
      return curve;
    }
    curve.points.push_back({.at = parts[0].count(),
                            .activations = parts[1].count(),
                            .workspace = parts[2].count(),
                            .moment = moments[static_cast<std::size_t>(parts[3].count())]});
  }
  return curve;
}

}  // namespace tandem
