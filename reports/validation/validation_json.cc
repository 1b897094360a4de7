#include <nlohmann/json.hpp>

#include "reports/validation/validation.h"

namespace tandem {
namespace {

nlohmann::ordered_json point_json(const ValidationPoint& point) {
  nlohmann::ordered_json json = {{"file", point.file},
                                 {"site", point.site},
                                 {"collective", point.collective},
                                 {"devices", point.devices},
                                 {"nodes", point.nodes},
                                 {"bytes", point.bytes},
                                 {"measured_us", point.measured_us},
                                 {"predicted_us", point.predicted_us},
                                 {"basis", point.basis},
                                 {"dtype", point.dtype},
                                 {"family", point.family}};
  json["algorithm"] = point.algorithm;
  json["apart"] = point.apart;
  return json;
}

nlohmann::ordered_json training_point_json(const TrainingPoint& point) {
  nlohmann::ordered_json json = {{"file", point.file},   {"source", point.source},     {"family", point.family},
                                 {"model", point.model}, {"strategy", point.strategy}, {"devices", point.devices},
                                 {"nodes", point.nodes}, {"measured", point.measured}, {"predicted", point.predicted},
                                 {"basis", point.basis}, {"unit", point.unit}};
  json["linear"] = point.linear > 0 ? nlohmann::ordered_json(point.linear) : nlohmann::ordered_json(nullptr);
  json["apart"] = point.apart;
  if (!point.run.empty()) json["run"] = point.run;
  if (point.peak) {
    json["peak_memory"] = {{"measured", point.peak->bytes},
                           {"of", point.peak->is_reserved ? "reserved" : "allocated"},
                           {"predicted", point.predicted_peak}};
  }
  return json;
}

}  // namespace

nlohmann::ordered_json validation_json(const Validation& validation) {
  nlohmann::ordered_json document;
  document["kind"] = "validation";
  document["protocol"] = validation.protocol;
  document["points"] = nlohmann::ordered_json::array();
  for (const ValidationPoint& point : validation.points) document["points"].push_back(point_json(point));
  for (const TrainingPoint& point : validation.training) document["points"].push_back(training_point_json(point));
  document["left_out"] = nlohmann::ordered_json::array();
  for (const LeftOut& left : validation.left_out) {
    document["left_out"].push_back({{"file", left.file}, {"why", left.why}});
  }
  document["notes"] = nlohmann::ordered_json::array();
  for (const LeftOut& note : validation.notes) document["notes"].push_back({{"file", note.file}, {"note", note.why}});
  document["contradictions"] = validation.contradictions;
  if (!validation.nothing.empty()) document["nothing"] = validation.nothing;
  return document;
}

}  // namespace tandem
