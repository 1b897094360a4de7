#include "reports/run/evaluations_json.h"

#include <cmath>

#include "reports/base/json_fields.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json value_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace

nlohmann::ordered_json evaluations_to_json(const Evaluations& evaluations) {
  Json json = {{"on", evaluations.is_beside ? "evaluator" : "workers"},
               {"every_steps", evaluations.every},
               {"passes", evaluations.passes},
               {"batch", evaluations.batch},
               {"due", evaluations.due},
               {"median_ns", evaluations.median_time()},
               {"waited_ns", evaluations.waited},
               {"job_ns", evaluations.job},
               {"share", evaluations.share()},
               {"afterwards_ns", evaluations.afterwards},
               {"done", Json::array()}};
  for (const Evaluated& one : evaluations.done) {
    json["done"].push_back({{"step", one.step}, {"time_ns", one.time}});
    if (one.loss) json["done"].back()["loss"] = value_or_null(*one.loss);
    if (one.accuracy) json["done"].back()["accuracy"] = value_or_null(*one.accuracy);
  }
  return json;
}

Evaluations evaluations_from_json(const JsonField& field) {
  Evaluations evaluations{.is_beside = field.required("on").text() == "evaluator",
                          .every = field.required("every_steps").whole_number(),
                          .passes = field.required("passes").positive_count(),
                          .batch = field.required("batch").whole_number(),
                          .due = field.required("due").whole_number(),
                          .waited = field.required("waited_ns").count(),
                          .job = field.required("job_ns").count(),
                          .afterwards = field.required("afterwards_ns").count()};
  for (const JsonField& item : field.required("done").items()) {
    Evaluated one{.step = item.required("step").whole_number(), .time = item.required("time_ns").count()};
    if (const JsonField loss = item.optional("loss"); loss.present()) one.loss = loss.number_or_null();
    if (const JsonField accuracy = item.optional("accuracy"); accuracy.present())
      one.accuracy = accuracy.number_or_null();
    evaluations.done.push_back(one);
  }
  return evaluations;
}

}  // namespace tandem
