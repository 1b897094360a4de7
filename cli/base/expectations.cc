#include "cli/base/expectations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/base/exit_codes.h"
#include "reports/base/text_table.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

constexpr double kNotThere = std::numeric_limits<double>::quiet_NaN();

double metric(const Report& report, const std::string& name) {
  const auto found = report.metrics.find(name);
  return found == report.metrics.end() ? kNotThere : found->second;
}

double exposed_share(const Report& report) {
  if (!report.has_parts()) return kNotThere;
  const Nanoseconds step = report.summary.step_time.mean;
  const Nanoseconds exposed = report.summary.per_step.exposed_communication;
  return step > 0 ? static_cast<double>(exposed) / static_cast<double>(step) : 0;
}

std::string number_text(double value) {
  return fmt::format("{:.6g}", value);
}

void print_unmet(const std::vector<std::string>& unmet) {
  for (const std::string& sentence : unmet) std::cerr << "expectation not met: " << shown(sentence) << "\n";
  std::cerr << std::flush;
}

std::string seconds_text(double value) {
  return time_text(value * 1e9);
}

}  // namespace

std::vector<std::string> unmet_expectations(const Expectations& expect, const Report& report) {
  std::vector<std::string> unmet;
  // A figure that the run lacks, or that is not a number, meets no expectation.
  const auto require = [&](bool holds, const char* what, double value, const std::string& bound, auto text) {
    if (holds) return;
    const std::string found = value == value ? text(value) : std::string("not known");
    unmet.push_back(fmt::format("{} is {}; {} is expected", what, found, bound));
  };
  const auto at_least = [&](const std::optional<double>& bound, const char* what, double value) {
    if (bound) require(value >= *bound, what, value, "at least " + number_text(*bound), number_text);
  };
  const auto at_most = [&](const std::optional<double>& bound, const char* what, double value, auto text) {
    if (bound) require(value <= *bound, what, value, "at most " + text(*bound), text);
  };
  const double step_s = static_cast<double>(report.summary.step_time.mean) * 1e-9;
  at_least(expect.min_test_accuracy, "test_accuracy", metric(report, "test_accuracy"));
  at_most(expect.max_final_loss, "the final loss", report.loss.empty() ? kNotThere : report.loss.back(), number_text);
  at_most(expect.max_step_time_s, "the step time", step_s, seconds_text);
  at_least(expect.min_throughput, "the throughput", report.throughput());
  at_most(expect.max_exposed_communication, "the exposed communication's share of the step", exposed_share(report),
          number_text);
  return unmet;
}

void add_unmet(const std::vector<std::string>& unmet, CheckedScenario& checked) {
  if (unmet.empty()) return;
  print_unmet(unmet);
  checked.exit_code = kNotMet;
  checked.misses_expectation = true;
  checked.cannot_be_judged = false;
  checked.reason += fmt::format("; expectation not met: {}", fmt::join(unmet, "; "));
  auto document = std::make_shared<nlohmann::ordered_json>(*checked.document);
  (*document)["expectations_not_met"] = unmet;
  checked.document = std::move(document);
}

int report_expectations(const Expectations& expect, const Report& report) {
  const std::vector<std::string> unmet = unmet_expectations(expect, report);
  print_unmet(unmet);
  return unmet.empty() ? kOk : kNotMet;
}

}  // namespace tandem
