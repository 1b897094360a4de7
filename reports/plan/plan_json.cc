#include "reports/plan/plan_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/run/report_json.h"
#include "reports/sweep/sweep_json.h"

namespace tandem {
namespace {

using PlanJson = nlohmann::ordered_json;

PlanJson number_or_null(double value) {
  return std::isfinite(value) ? PlanJson(value) : PlanJson(nullptr);
}

PlanJson planned_point(const PlanTable& table, std::size_t place) {
  PlanJson json = point_to_json(table.sweep.points[place]);
  const PlannedPoint& planned = table.planned[place];
  if (planned.least_step_s > 0) json["least_step_s"] = planned.least_step_s;
  json["whole"] = planned.is_whole;
  return json;
}

PlanJson change_to_json(const HandChange& change) {
  PlanJson json = {{"fields", PlanJson::array()}};
  for (const HandChange::Field& one : change.fields)
    json["fields"].push_back({{"field", one.field}, {"from", one.from}, {"to", one.to}});
  json["point"] = point_to_json(change.point);
  return json;
}

PlanJson other_to_json(const OtherPlan& other) {
  PlanJson json = {{"change", other.change}};
  if (!other.problem.empty()) {
    json["problem"] = other.problem;
    return json;
  }
  json["value"] = other.value;
  json["gap"] = number_or_null(other.gap);
  json["same_point"] = other.is_same_point;
  json["best"] = point_to_json(other.best);
  return json;
}

}  // namespace

nlohmann::ordered_json plan_to_json(const PlanTable& table) {
  PlanJson json = document_of("plan");
  json["scenario"] = table.sweep.scenario;
  json["engine"] = table.sweep.engine;
  json["goal"] = name_of(table.goal);
  json["fields"] = table.sweep.fields;
  const std::vector<std::size_t> ranks = table.ranking();
  json["best"] = PlanJson::array();
  for (std::size_t i = 0; i < std::min(table.wanted, ranks.size()); ++i) json["best"].push_back(ranks[i]);
  if (!ranks.empty()) {
    json["value"] = table.value(ranks.front());
    json["least"] = number_or_null(table.least_of_all());
    json["gap"] = number_or_null(table.gap());
  }
  json["counts"] = {{"points", table.sweep.points.size()},
                    {"simulated", table.simulated()},
                    {"do_not_fit", table.sweep.count(PointState::does_not_fit)},
                    {"cannot_run", table.sweep.count(PointState::failed)},
                    {"ruled_out", table.ruled_out()}};
  if (!table.stopped.empty()) json["stopped"] = table.stopped;
  if (table.usual.state != PointState::not_run) json["as_it_is"] = point_to_json(table.usual);
  if (!table.by_hand.empty()) {
    json["by_hand"] = PlanJson::array();
    for (const HandChange& change : table.by_hand) json["by_hand"].push_back(change_to_json(change));
  }
  if (!table.others.empty()) {
    json["what_if"] = PlanJson::array();
    for (const OtherPlan& other : table.others) json["what_if"].push_back(other_to_json(other));
  }
  json["points"] = PlanJson::array();
  for (std::size_t i = 0; i < table.sweep.points.size(); ++i) json["points"].push_back(planned_point(table, i));
  return json;
}

}  // namespace tandem
