#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "reports/comparison/compare.h"
#include "reports/run/report_text.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

constexpr std::size_t kMostCollectiveRows = 12;  // with more rows only bands of sizes are shown
constexpr std::size_t kWidestTitle = 36;         // a longer one goes above its table
constexpr std::size_t kFewestForBands = 5;       // with fewer, the rows say everything
constexpr double kHeadlineShare = 0.1;           // the headline has the parts that take this share of a step

// A part of a step: its name in Comparison::figures, its label in the table of details, and in the headline.
struct PartRow {
  const char* figure;
  const char* label;
  const char* headline;  // null: in the details only
};

constexpr PartRow kPartRows[] = {
    {"compute", "  compute", "compute"},
    {"update", "  update", "update"},
    {"exposed_input", "  exposed input", "exposed input"},
    {"exposed_communication", "  exposed communication", "exposed communication"},
    {"other", "  other", "other"},
    {"idle", "  idle", "idle"},
    {"input", "input, hidden or not", nullptr},
    {"communication", "communication, hidden or not", nullptr},
};

std::string label_of(const Report& report, std::string_view otherwise) {
  return fmt::format("{} ({})", report.deterministic ? "simulated" : otherwise, report.engine);
}

std::string measured_label(const Comparison& comparison) {
  return label_of(comparison.measured, "measured");
}

std::string predicted_label(const Comparison& comparison) {
  return label_of(comparison.predicted, "predicted");
}

std::string error_cell(const std::optional<double>& error) {
  return error ? error_text(*error) : "-";
}

void add_figure(TextTable& table, const Comparison& comparison, std::string_view name, std::string label) {
  const ComparedFigure& figure = comparison.figure(name);
  table.add({std::move(label), time_text(figure.measured), time_text(figure.predicted), error_cell(figure.error)});
}

void add_step(TextTable& table, const Comparison& comparison) {
  const ComparedFigure& throughput = comparison.figure("throughput");
  add_figure(table, comparison, "step_time", "step time");
  if (comparison.measured.summary.step_time.is_uneven() || comparison.predicted.summary.step_time.is_uneven()) {
    add_figure(table, comparison, "median_step_time", "  median step");
  }
  table.add({"throughput", rate_text(throughput.measured, comparison.measured.throughput_unit),
             rate_text(throughput.predicted, comparison.predicted.throughput_unit), error_cell(throughput.error)});
  if (comparison.measured.evaluations && comparison.predicted.evaluations)
    add_figure(table, comparison, "evaluation", "an evaluation");
}

void add_parts(TextTable& table, const Comparison& comparison) {
  if (!comparison.has_parts()) return;
  for (const PartRow& row : kPartRows) add_figure(table, comparison, row.figure, row.label);
}

bool is_headline(const Comparison& comparison, const PartRow& row) {
  const ComparedFigure& part = comparison.figure(row.figure);
  const ComparedFigure& step = comparison.figure("step_time");
  return part.measured >= kHeadlineShare * step.measured || part.predicted >= kHeadlineShare * step.predicted;
}

// Returns the error of a part relative to the measured step: how much of the step's error it explains.
std::string share_of_step(const Comparison& comparison, const ComparedFigure& part) {
  const ComparedFigure& step = comparison.figure("step_time");
  return step.measured == 0 || comparison.is_disturbed() ? "-"
                                                         : error_text((part.predicted - part.measured) / step.measured);
}

// Adds the parts that take a good share of the step in either run; returns the names of the others that take any time.
std::vector<std::string> add_headline_parts(TextTable& table, const Comparison& comparison) {
  std::vector<std::string> left_out;
  for (const PartRow& row : kPartRows) {
    if (row.headline == nullptr) continue;
    const ComparedFigure& part = comparison.figure(row.figure);
    if (part.measured == 0 && part.predicted == 0) continue;
    if (is_headline(comparison, row)) {
      table.add({fmt::format("  {}", row.headline), time_text(part.measured), time_text(part.predicted),
                 error_cell(part.error), share_of_step(comparison, part)});
    } else {
      left_out.emplace_back(row.headline);
    }
  }
  return left_out;
}

void add_collectives(TextTable& table, const Comparison& comparison) {
  if (comparison.collectives.empty() || comparison.collectives.size() > kMostCollectiveRows) return;
  table.add_rule();
  for (const ComparedCollective& collective : comparison.collectives) {
    table.add({fmt::format("{} {} x {}", collective.operation, size_text(collective.bytes), collective.devices),
               time_text(collective.measured), time_text(collective.predicted), error_cell(collective.error)});
  }
}

std::string range_text(const ComparedBand& band) {
  if (band.from_bytes == 0) return "below " + size_text(band.to_bytes);
  if (band.to_bytes == std::int64_t{1} << 62) return "from " + size_text(band.from_bytes);
  return fmt::format("{} to {}", size_text(band.from_bytes), size_text(band.to_bytes));
}

std::string bands_text(const Comparison& comparison) {
  if (comparison.bands.empty() || comparison.collectives.size() < kFewestForBands) return "";
  TextTable table(2);
  table.add({"collectives by size", "", "kinds", "median |error|", "p95 |error|"});
  for (const ComparedBand& band : comparison.bands) {
    table.add({"  " + band.operation, range_text(band), std::to_string(band.count), percent_text(band.median_error),
               percent_text(band.p95_error)});
  }
  return "\n" + table.text();
}

// Says whether the error of the step is usual, and what decides it.
std::string error_lines(const Comparison& comparison) {
  const std::optional<double>& error = comparison.figure("step_time").error;
  std::string text;
  if (const std::optional<bool> usual = is_usual(comparison)) {
    const ErrorBand& band = *comparison.predicted.expected_error;
    text += fmt::format("{} is {} the usual {} of {}", error_text(*error), *usual ? "within" : "outside",
                        interval_text(band.widest()->of_predicted()), band.basis);
  }
  if (const std::optional<DecidingPart> part = deciding_part(comparison)) {
    text += fmt::format("{}{} decides {}: {} of the step", text.empty() ? "" : "; ", part->name,
                        text.empty() ? "the error" : "it", error_text(part->of_step));
  }
  if (comparison.measured.cores && comparison.measured.cores->are_short()) {
    text += (text.empty() ? "" : "; ") + cores_text(*comparison.measured.cores);
  }
  return text.empty() ? "" : wrapped_list("", words_of(text), "");
}

std::string evaluated_text(const Comparison& comparison) {
  const std::optional<double>& difference = comparison.evaluated_loss_max_relative_difference;
  if (!difference) return "";
  if (*difference == 0) return "loss of evaluations: equal\n";
  return fmt::format("loss of evaluations: at most {:.1e} apart (relative)\n", *difference);
}

std::string loss_text(const Comparison& comparison) {
  if (!comparison.loss_max_relative_difference) return "";
  const std::size_t steps = std::min(comparison.measured.loss.size(), comparison.predicted.loss.size());
  if (*comparison.loss_max_relative_difference == 0) return fmt::format("loss: equal in all {} steps\n", steps);
  return fmt::format("loss: at most {:.1e} apart (relative) over {} steps\n", *comparison.loss_max_relative_difference,
                     steps);
}

std::string noise_text(const Comparison& comparison) {
  const StepTime& time = comparison.measured.summary.step_time;
  if (comparison.measured.deterministic) return "";
  return fmt::format("noise of the measured run: {} of its step time (median absolute deviation, {} steps)\n",
                     percent_text(comparison.noise), time.samples);
}

std::string bullets(const std::vector<std::string>& notes) {
  Report holder;
  holder.notes = notes;
  return notes_text(holder);
}

// The title goes above a table whose first column it would widen.
std::string title_line(const Comparison& comparison) {
  const std::string title = title_of(comparison.measured);
  return title.size() > kWidestTitle ? title + "\n" : "";
}

// A table of one comparison, with the rows of the step as a whole. A last column of the headline is for its parts.
TextTable table_of(const Comparison& comparison, bool is_headline) {
  TextTable table;
  std::vector<std::string> heading = {title_line(comparison).empty() ? title_of(comparison.measured) : "",
                                      measured_label(comparison), predicted_label(comparison), "error"};
  if (is_headline) heading.emplace_back("of the step");
  table.add(std::move(heading));
  table.add_rule();
  add_step(table, comparison);
  return table;
}

// Returns the warning that precedes the figures of a disturbed comparison.
std::string disturbed_text(const Comparison& comparison) {
  if (!comparison.is_disturbed()) return "";
  return wrapped_list("",
                      words_of(fmt::format("DISTURBED: {}. No errors are shown: they would say nothing of the "
                                           "model. Try again on a machine that nobody else uses.",
                                           comparison.disturbance)),
                      "") +
         "\n";
}

std::string headline_text(const Comparison& comparison) {
  TextTable table = table_of(comparison, true);
  const std::vector<std::string> left_out = add_headline_parts(table, comparison);
  std::string text = disturbed_text(comparison) + title_line(comparison) + table.text() + "\n";
  text += wrapped_list(
      fmt::format("left out (see --details), below {:.0f} % of the step in both runs: ", kHeadlineShare * 100),
      left_out, ",");
  return text + noise_text(comparison) + error_lines(comparison) + loss_text(comparison) + evaluated_text(comparison);
}

std::string details_text(const Comparison& comparison) {
  TextTable table = table_of(comparison, false);
  add_parts(table, comparison);
  add_collectives(table, comparison);
  return disturbed_text(comparison) + title_line(comparison) + table.text() + bands_text(comparison) + "\n" +
         noise_text(comparison) + error_lines(comparison) + loss_text(comparison) + evaluated_text(comparison);
}

// Adds the lines that apply to all comparisons.
std::string footer_text(const std::vector<Comparison>& comparisons) {
  const Report& predicted = comparisons.back().predicted;
  std::string text;
  if (!predicted.topology.empty()) {
    text += fmt::format("{}: topology {} (figures: {})\n", predicted_label(comparisons.back()),
                        shown(predicted.topology), shown(predicted.topology_provenance));
  }
  text += settings_text("  ", predicted);
  std::vector<std::string> notes;
  std::set<std::string> seen;
  for (const Comparison& comparison : comparisons) {
    for (const auto* list : {&comparison.notes, &comparison.measured.notes, &comparison.predicted.notes}) {
      for (const std::string& note : *list) {
        if (seen.insert(note).second) notes.push_back(note);
      }
    }
  }
  if (!notes.empty()) text += "notes\n" + bullets(notes);
  return text;
}

std::string overview_text(const std::vector<Comparison>& comparisons) {
  const Comparison& first = comparisons.front();
  std::string title = first.measured.scenario;
  if (!first.measured.strategy.empty()) title += ", " + first.measured.strategy;
  title += fmt::format(": time of a step, {} and {}; the last two columns are errors of its parts",
                       measured_label(first), predicted_label(first));
  TextTable table(2);
  table.add({"replicas", "cross-device ops", "measured", first.predicted.deterministic ? "simulated" : "predicted",
             "error", "noise", "compute", "comm."});
  table.add_rule();
  std::vector<double> errors;
  int disturbed = 0;
  for (const Comparison& comparison : comparisons) {
    const ComparedFigure& step = comparison.figure("step_time");
    table.add({std::to_string(comparison.measured.replicas), comparison.measured.cross_device_ops,
               time_text(step.measured), time_text(step.predicted), error_cell(step.error),
               comparison.measured.deterministic ? "-" : percent_text(comparison.noise),
               error_cell(comparison.figure("compute").error), error_cell(comparison.figure("communication").error)});
    if (step.error) errors.push_back(std::abs(*step.error));
    disturbed += comparison.is_disturbed() ? 1 : 0;
  }
  std::string text;
  if (disturbed > 0) {
    text = fmt::format("DISTURBED: {} of {} runs, which show no error\n\n", disturbed, comparisons.size());
  }
  text += wrapped_list("", words_of(title), "") + "\n" + table.text();
  if (errors.empty()) return text + "\n";
  return text + fmt::format("\nstep time: median |error| {}, largest {} over {} runs\n",
                            percent_text(median_of(errors)),
                            percent_text(*std::max_element(errors.begin(), errors.end())), errors.size());
}

}  // namespace

std::string comparisons_text(const std::vector<Comparison>& comparisons, bool details) {
  if (comparisons.empty()) return "";
  std::string text = faults_text(comparisons.back().measured);
  if (comparisons.size() > 1) text += overview_text(comparisons) + "\n";
  if (details) {
    for (const Comparison& comparison : comparisons) text += details_text(comparison) + "\n";
  } else {
    text += headline_text(comparisons.back()) + "\n";
  }
  text += footer_text(comparisons);
  text.erase(text.find_last_not_of('\n') + 1);
  return text + "\n";
}

}  // namespace tandem
