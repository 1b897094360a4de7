#include "reports/run/explanation_text.h"

#include <fmt/format.h>

#include "reports/base/text_table.h"
#include "topologies/base/error.h"
#include "topologies/base/shown.h"

namespace tandem {
std::string gap_text(const Report& report, const Expectation& expected) {
  const Nanoseconds mean = report.summary.step_time.mean;
  if (report.is_disturbed()) return "not compared, for the run was disturbed";
  const std::string gap = fmt::format("this run is {} from it", error_text(expected.gap_of(mean)));
  const std::optional<bool> is_normal = expected.is_normal(mean);
  if (!is_normal) return gap + "; how far the model may be off is not known";
  return fmt::format("{}, {} the model's {}", gap, *is_normal ? "within" : "OUTSIDE",
                     interval_text(*expected.band.widest()));
}

std::string largest_term_text(const Report& report, const Expectation& expected) {
  if (!expected.largest || report.is_disturbed()) return "";
  return fmt::format("of these {}, {} explains {}",
                     signed_time_text(report.summary.step_time.mean - expected.step_time), expected.largest->name,
                     signed_time_text(expected.largest->time));
}

// A prediction comes with the error that such predictions have had.
std::string expectation_text(const Report& report) {
  if (report.deterministic) {
    if (!report.expected_error) return "";
    return fmt::format("error       {:>12}   {}\n", band_text(*report.expected_error),
                       band_basis_text(*report.expected_error));
  }
  if (!report.expectation) {
    return fmt::format("expected    {:>12}   needs --topology FILE, as `tandem calibrate -o FILE` writes it\n", "-");
  }
  const Expectation& expected = *report.expectation;
  std::string text = fmt::format("expected    {:>12}   on {}; {}\n", time_text(expected.step_time),
                                 shown(expected.topology), gap_text(report, expected));
  const std::string term = largest_term_text(report, expected);
  return term.empty() ? text : text + fmt::format("{:27}{}\n", "", term);
}

std::string critical_path_text(const Report& report) {
  const auto& path = report.summary.critical_path;
  if (!path) return "";
  const Nanoseconds length =
      path->compute + path->update + path->input + path->communication + path->other + path->idle;
  const bool is_uneven = report.summary.step_time.is_uneven();  // shares of the mean step would not compare
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, Nanoseconds time, const std::string& more = "") {
    if (time > 0) parts.push_back(fmt::format("{} {}{}", name, share_of(time, length), more));
  };
  add("compute", path->compute);
  add("update", path->update);
  add("input", path->input);
  add("communication", path->communication,
      is_uneven ? ""
                : fmt::format(" (exposed {})",
                              share_of(report.summary.per_step.exposed_communication, report.summary.step_time.mean)));
  add("other", path->other);
  add("idle", path->idle);
  return wrapped_list(is_uneven ? "critical path of the step of median length: " : "critical path: ", parts, ",");
}

std::string waiting_text(const Report& report) {
  const RankWaiting* slowest = slowest_rank(report.summary.ranks);
  if (slowest == nullptr) return "";
  Nanoseconds waiting = 0, transfer = 0, devices = 0;
  for (const RankWaiting& rank : report.summary.ranks) {
    waiting += rank.waiting * rank.devices;
    transfer += rank.transfer * rank.devices;
    devices += rank.devices;
  }
  TANDEM_CHECK(devices > 0, "a rank of no device");
  const auto of_step = [&](Nanoseconds time) {
    return fmt::format("{} ({})", time_text(time), share_of(time, report.summary.step_time.mean));
  };
  const std::string text = fmt::format(
      "in the collectives of a step a rank waits {} for the last one and transfers for {}; most of all for "
      "{}, which comes last in {} of its calls and costs the others {}",
      of_step(waiting / devices), of_step(transfer / devices), slowest->device, percent_text(slowest->comes_last),
      of_step(slowest->caused));
  return wrapped_list("", words_of(text), "");
}

}  // namespace tandem
