#include "reports/course/course_json.h"

#include <cmath>

#include "reports/base/json_fields.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// Most jobs do not evaluate, and earlier versions knew none that do: only those that do have the state.
Json shares_to_json(const std::array<double, kCourseStates>& values) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kCourseStates; ++i) {
    const auto state = static_cast<CourseState>(i);
    if (state != CourseState::evaluating || values[i] > 0) json[name_of(state)] = values[i];
  }
  return json;
}

std::array<double, kCourseStates> shares_from_json(const JsonField& field) {
  std::array<double, kCourseStates> values{};
  for (std::size_t i = 0; i < kCourseStates; ++i) {
    const auto state = static_cast<CourseState>(i);
    const JsonField value =
        state == CourseState::evaluating ? field.optional(name_of(state)) : field.required(name_of(state));
    if (value.present()) values[i] = value.number();
  }
  return values;
}

}  // namespace

Json course_to_json(const JobCourse& course) {
  Json json = {{"policy", course.policy},
               {"goodput", course.goodput()},
               {"seconds", course.seconds},
               {"steps", course.steps},
               {"steps_done", course.steps_done},
               {"steps_lost", course.steps_lost},
               {"undisturbed_step_s", course.undisturbed_step_s},
               {"failures", course.failures},
               {"checkpoints", course.checkpoints},
               {"updates_twice", course.updates_twice},
               {"mttf_s", course.mttf_s},
               {"mttf_is_given", course.is_mttf_given},
               {"time_s", shares_to_json(course.time_s)}};
  if (course.least_goodput && course.greatest_goodput) {
    json["goodput_when_drawn_again"] = {
        {"least", *course.least_goodput}, {"greatest", *course.greatest_goodput}, {"draws", course.redraws}};
  }
  if (course.evaluations > 0) json["evaluations"] = course.evaluations;
  if (!course.ended.empty()) json["ended"] = course.ended;
  if (!course.unknown.empty()) json["unknown"] = course.unknown;
  for (const BreakEven& one : course.break_even) {
    json["break_even"].push_back({{"goodput", one.goodput}, {"seconds_per_failure", one.seconds}});
  }
  if (course.best_interval_s && course.best_availability) {
    json["best_checkpoint_interval"] = {{"seconds", *course.best_interval_s},
                                        {"availability", *course.best_availability}};
  }
  json["slices"] = Json::array();
  for (const auto& slice : course.slices) json["slices"].push_back(shares_to_json(slice));
  return json;
}

JobCourse course_from_json(const JsonField& field) {
  JobCourse course{.policy = field.required("policy").text(),
                   .ended = text_or_empty(field, "ended"),
                   .steps = field.required("steps").number(),
                   .steps_done = field.required("steps_done").number(),
                   .undisturbed_step_s = field.required("undisturbed_step_s").number(),
                   .seconds = field.required("seconds").number(),
                   .time_s = shares_from_json(field.required("time_s")),
                   .failures = field.required("failures").whole_number(),
                   .steps_lost = field.required("steps_lost").number(),
                   .checkpoints = field.required("checkpoints").whole_number(),
                   .updates_twice = field.required("updates_twice").whole_number(),
                   .mttf_s = field.required("mttf_s").number(),
                   .is_mttf_given = field.required("mttf_is_given").boolean()};
  if (const JsonField evaluations = field.optional("evaluations"); evaluations.present())
    course.evaluations = evaluations.whole_number();
  if (const JsonField again = field.optional("goodput_when_drawn_again"); again.present()) {
    course.least_goodput = again.required("least").number();
    course.greatest_goodput = again.required("greatest").number();
    course.redraws = again.required("draws").positive_count();
  }
  for (const JsonField& item : field.optional("unknown").items()) course.unknown.push_back(item.text());
  for (const JsonField& item : field.optional("break_even").items()) {
    course.break_even.push_back(
        {.goodput = item.required("goodput").number(), .seconds = item.required("seconds_per_failure").number()});
  }
  if (const JsonField best = field.optional("best_checkpoint_interval"); best.present()) {
    course.best_interval_s = best.required("seconds").number();
    course.best_availability = best.required("availability").number();
  }
  for (const JsonField& item : field.required("slices").items()) course.slices.push_back(shares_from_json(item));
  return course;
}

}  // namespace tandem
