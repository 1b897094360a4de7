// The evaluations of a run in documents, for people and on pages.
#include "reports/run/evaluations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/pages/page.h"
#include "reports/run/evaluations_text.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Evaluations between_steps() {
  return {.every = 100,
          .passes = 5,
          .batch = 1024,
          .due = 3,
          .waited = 9'000'000,
          .job = 300'000'000,
          .done = {{.step = 100, .time = 2'000'000, .loss = 1.5, .accuracy = 0.5},
                   {.step = 200, .time = 3'000'000, .loss = 1, .accuracy = 0.625},
                   {.step = 300, .time = 4'000'000, .loss = 0.5, .accuracy = 0.75}}};
}

Evaluations beside() {
  Evaluations evaluations = between_steps();
  evaluations.is_beside = true;
  evaluations.due = 5;
  evaluations.waited = 30'000;
  evaluations.afterwards = 1'000'000;
  for (Evaluated& one : evaluations.done) one.loss = one.accuracy = std::nullopt;
  return evaluations;
}

TEST(EvaluationsOfARun, AreReadAgain) {
  Report report = full_report();
  for (const Evaluations& evaluations : {between_steps(), beside()}) {
    report.evaluations = evaluations;
    const nlohmann::ordered_json json = report_to_json(report);
    EXPECT_EQ(report_from_json(json.dump(), "again").evaluations, evaluations);
    EXPECT_EQ(json["evaluations"]["median_ns"], 3'000'000);
  }
  EXPECT_EQ(report_to_json(report)["evaluations"]["share"], 0.0001);
  EXPECT_FALSE(report_to_json(full_report()).contains("evaluations"));
}

TEST(EvaluationsOfARun, AreALineOfTheReport) {
  Report report = full_report();
  EXPECT_THAT(report_text(report), Not(HasSubstr("evaluation ")));
  report.evaluations = between_steps();
  EXPECT_THAT(report_text(report),
              AllOf(HasSubstr("evaluation      3.000 ms   median of 3, every 100 steps: 5 x 1024 examples on all"),
                    HasSubstr("3.0 % of the job"), HasSubstr("loss 1.5 -> 0.5, accuracy 50.0 % -> 75.0 %")));
  EXPECT_THAT(evaluations_sentence(beside()),
              AllOf(HasSubstr("median of 3 (2 more were overtaken by newer variables)"),
                    HasSubstr("by an evaluator beside training; training waited 30.00 us for copies of the variables"),
                    HasSubstr("the last one ended 1.000 ms after training")));
  EXPECT_EQ(evaluated_values_text(beside()), "");
}

}  // namespace
}  // namespace tandem
