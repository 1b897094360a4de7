#include "reports/sweep/sweep_json.h"

#include <algorithm>

#include "reports/base/json_fields.h"
#include "reports/errors/known_errors.h"
#include "reports/run/memory_json.h"
#include "reports/run/model_work_json.h"
#include "reports/run/report_json.h"

namespace tandem {
namespace {

using SweepJson = nlohmann::ordered_json;

PointState state_of(const JsonField& field) {
  const std::string text = field.text();
  for (const PointState state :
       {PointState::done, PointState::does_not_fit, PointState::failed, PointState::lost, PointState::not_run}) {
    if (text == name_of(state)) return state;
  }
  field.error("is no state of a point: '" + text + "'");
  return PointState::not_run;
}

}  // namespace

nlohmann::ordered_json point_to_json(const SweptPoint& point) {
  SweepJson json;
  json["values"] = SweepJson::object();
  for (const auto& [field, value] : point.values) json["values"][field] = value;
  json["state"] = name_of(point.state);
  if (!point.problem.empty()) json["problem"] = point.problem;
  if (!point.strategy.empty()) json["strategy"] = point.strategy;
  if (point.devices > 0) json["devices"] = point.devices;
  if (point.state == PointState::done) {
    json["throughput"] = {{"value", point.throughput}, {"unit", point.unit}};
    json["step_time_ns"] = point.step_time;
    json["median_step_time_ns"] = point.median_step_time;
    if (point.long_steps) json["long_steps"] = long_steps_to_json(*point.long_steps);
    if (point.has_parts()) json["per_step_ns"] = per_step_to_json(point.per_step);
  }
  if (!point.limit.empty()) json["limit"] = point.limit;
  if (point.memory) json["memory_bytes"] = memory_to_json(*point.memory);
  if (nlohmann::ordered_json rates = rates_to_json(point.rates); !rates.empty()) json["rates"] = std::move(rates);
  if (!point.expected_error.empty()) json["expected_error"] = intervals_to_json(point.expected_error);
  if (!point.currency.empty()) json["currency"] = point.currency;
  if (point.estimate)
    json["estimate"] = {{"cpu_s", point.estimate->cpu_s}, {"memory_bytes", point.estimate->memory_bytes}};
  if (point.course) {
    json["job"] = {{"seconds", point.course->seconds},
                   {"goodput", point.course->goodput},
                   {"least_goodput", point.course->least_goodput},
                   {"greatest_goodput", point.course->greatest_goodput}};
    if (!point.course->ended.empty()) json["job"]["ended"] = point.course->ended;
  }
  if (point.evaluation) {
    json["evaluation"] = {{"median_ns", point.evaluation->median}, {"share", point.evaluation->share}};
  }
  if (!point.unused.empty()) json["notes"] = point.unused;
  return json;
}

SweptPoint point_from_json(const JsonField& field) {
  SweptPoint point;
  for (const auto& [name, value] : field.required("values").entries()) point.values.emplace_back(name, value.text());
  point.state = state_of(field.required("state"));
  point.problem = text_or_empty(field, "problem");
  point.strategy = text_or_empty(field, "strategy");
  point.limit = text_or_empty(field, "limit");
  if (const JsonField devices = field.optional("devices"); devices.present()) point.devices = devices.small_count();
  if (const JsonField memory = field.optional("memory_bytes"); memory.present())
    point.memory = memory_from_json(memory);
  if (const JsonField rates = field.optional("rates"); rates.present()) point.rates = rates_from_json(rates);
  if (const JsonField error = field.optional("expected_error"); error.is_number()) {
    point.expected_error = {interval_of_error(error.number())};  // of an earlier version
  } else {
    point.expected_error = intervals_from_json(error);
  }
  point.currency = text_or_empty(field, "currency");
  if (const JsonField estimate = field.optional("estimate"); estimate.present()) {
    point.estimate = {.cpu_s = estimate.required("cpu_s").number(),
                      .memory_bytes = estimate.required("memory_bytes").number()};
  }
  if (const JsonField job = field.optional("job"); job.present()) {
    point.course = {.seconds = job.required("seconds").number(),
                    .goodput = job.required("goodput").number(),
                    .least_goodput = job.required("least_goodput").number(),
                    .greatest_goodput = job.required("greatest_goodput").number(),
                    .ended = text_or_empty(job, "ended")};
  }
  if (const JsonField evaluation = field.optional("evaluation"); evaluation.present()) {
    point.evaluation = {.median = evaluation.required("median_ns").count(),
                        .share = evaluation.required("share").number()};
  }
  for (const JsonField& note : field.optional("notes").items()) point.unused.push_back(note.text());
  if (point.state != PointState::done) return point;
  const JsonField throughput = field.required("throughput");
  const JsonField value = throughput.required("value");
  point.throughput = value.number();
  if (point.throughput < 0) value.error("must not be negative");
  point.unit = throughput.required("unit").text();
  point.step_time = field.required("step_time_ns").count();
  const JsonField median = field.optional("median_step_time_ns");  // not in documents of earlier versions
  point.median_step_time = median.present() ? median.count() : point.step_time;
  point.long_steps = long_steps_from_json(field.optional("long_steps"));
  if (point.has_parts()) point.per_step = per_step_from_json(field.required("per_step_ns"));
  return point;
}

nlohmann::ordered_json sweep_to_json(const SweepTable& table) {
  SweepJson json = document_of("sweep");
  json["scenario"] = table.scenario;
  json["engine"] = table.engine;
  json["fields"] = table.fields;
  const std::vector<std::size_t> ranking = table.ranking();
  json["best"] = ranking.empty() ? SweepJson(nullptr) : SweepJson(ranking.front());
  if (const auto others = table.not_told_from_best(); !others.empty()) json["not_told_from_best"] = others;
  json["pareto_front"] = table.pareto_front();
  if (!table.currency().empty()) json["cost_front"] = table.cost_front();
  json["crossings"] = SweepJson::array();
  for (const Crossing& crossing : table.crossings()) {
    json["crossings"].push_back({{"field", crossing.field},
                                 {"below", crossing.below},
                                 {"above", crossing.above},
                                 {"from", crossing.from},
                                 {"to", crossing.to},
                                 {"at", crossing.at}});
  }
  json["notes"] = table.notes();
  json["points"] = SweepJson::array();
  for (const SweptPoint& point : table.points) json["points"].push_back(point_to_json(point));
  return json;
}

SweepTable sweep_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  SweepTable table{.scenario = root.required("scenario").text(),
                   .engine = root.required("engine").text(),
                   .fields = {},
                   .points = {}};
  for (const JsonField& field : root.required("fields").items()) table.fields.push_back(field.text());
  for (const JsonField& point : root.required("points").items()) table.points.push_back(point_from_json(point));
  reading.finish();
  return table;
}

}  // namespace tandem
