#include "reports/comparison/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/comparison/report_changes.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "topologies/base/shown.h"
#include "topologies/price.h"

namespace tandem {
namespace {

using Row = std::array<std::string, 4>;

std::string relative_text(double before, double now) {
  return before > 0 && std::isfinite(now / before) ? error_text(now / before - 1) : "-";
}

Row time_row(std::string name, Nanoseconds before, Nanoseconds now) {
  const auto [one, other] = time_texts(before, now);
  return {std::move(name), one, other, relative_text(static_cast<double>(before), static_cast<double>(now))};
}

void add_step(const RunComparison& runs, std::vector<Row>& rows) {
  const StepTime& before = runs.baseline.summary.step_time;
  const StepTime& now = runs.now.summary.step_time;
  const StepFigure figure = exact_figure(before, now);
  rows.push_back(time_row("step time", before.*figure, now.*figure));
  if (before.is_uneven() || now.is_uneven()) rows.push_back(time_row("  median step", before.median, now.median));
  if (!runs.baseline.has_parts() || !runs.now.has_parts() || before.has_mean != now.has_mean) return;
  for (const StepPart& part : step_parts()) {
    const Nanoseconds one = runs.baseline.summary.per_step.*part.time, other = runs.now.summary.per_step.*part.time;
    if (one == 0 && other == 0) continue;
    rows.push_back(time_row("  " + with_blanks(part.name), one, other));
  }
}

void add_rates(const RunComparison& runs, std::vector<Row>& rows) {
  const double before = runs.baseline.throughput(), now = runs.now.throughput();
  rows.push_back({"throughput", rate_text(before, runs.baseline.throughput_unit),
                  rate_text(now, runs.now.throughput_unit), relative_text(before, now)});
  if (runs.baseline.scaling_efficiency && runs.now.scaling_efficiency) {
    rows.push_back({"scaling efficiency", percent_text(*runs.baseline.scaling_efficiency),
                    percent_text(*runs.now.scaling_efficiency),
                    relative_text(*runs.baseline.scaling_efficiency, *runs.now.scaling_efficiency)});
  }
  const RunRates one = rates_of(runs.baseline), other = rates_of(runs.now);
  const auto add = [&](const char* name, double RunRates::*figure, const auto& text_of) {
    if (one.*figure <= 0 || other.*figure <= 0) return;
    rows.push_back({name, text_of(one.*figure), text_of(other.*figure), relative_text(one.*figure, other.*figure)});
  };
  add("tokens of a device", &RunRates::tokens_per_s_per_device,
      [](double rate) { return rate_text(rate, "tokens/s"); });
  add("model flops utilisation", &RunRates::mfu, [](double share) { return percent_text(share); });
  if (runs.baseline.price && runs.now.price && runs.baseline.price->currency == runs.now.price->currency) {
    add("cost of a step", &RunRates::cost_per_step,
        [&](double amount) { return money_text(amount, runs.now.price->currency); });
  }
}

void add_memory(const RunComparison& runs, std::vector<Row>& rows) {
  if (!runs.baseline.memory || !runs.now.memory) return;
  const std::int64_t before = runs.baseline.memory->total(), now = runs.now.memory->total();
  rows.push_back({"memory that a device needs", memory_size_text(before), memory_size_text(now),
                  relative_text(static_cast<double>(before), static_cast<double>(now))});
}

void add_metrics(const RunComparison& runs, std::vector<Row>& rows) {
  for (const auto& [name, now] : runs.now.metrics) {
    const auto before = runs.baseline.metrics.find(name);
    if (before == runs.baseline.metrics.end()) continue;
    rows.push_back({std::string(metric_label(name)), metric_value_text(name, before->second),
                    metric_value_text(name, now), relative_text(before->second, now)});
  }
}

void add_collectives(const RunComparison& runs, std::vector<Row>& rows) {
  const auto is_same = [](const CollectiveSummary& one, const CollectiveSummary& other) {
    return one.operation == other.operation && one.bytes == other.bytes && one.devices == other.devices;
  };
  for (const CollectiveSummary& now : runs.now.summary.collectives) {
    const auto before = std::ranges::find_if(runs.baseline.summary.collectives,
                                             [&](const CollectiveSummary& one) { return is_same(one, now); });
    if (before == runs.baseline.summary.collectives.end()) continue;
    rows.push_back(time_row(fmt::format("{} {} x {}", now.operation, size_text(now.bytes), now.devices),
                            before->time_ns, now.time_ns));
  }
}

void add_noise(const char* which, const Report& report, std::vector<std::string>& remarks) {
  if (report.deterministic) return;
  const StepTime& time = report.summary.step_time;
  if (report.is_disturbed()) {
    remarks.push_back(fmt::format("{} was disturbed: {}", which, lost_text(*report.machine_use)));
  }
  if (time.median <= 0) return;
  const double noise = static_cast<double>(time.median_absolute_deviation) / static_cast<double>(time.median);
  remarks.push_back(fmt::format("{}: noise {} of its step time (median absolute deviation, {} steps)", which,
                                percent_text(noise), time.samples));
}

void add_counts(const RunComparison& runs, std::vector<std::string>& remarks) {
  if (!runs.baseline.counts || !runs.now.counts) return;
  if (runs.baseline.asynchronous || runs.now.asynchronous) return;
  const int steps = runs.now.steps - runs.now.warmup_steps;
  if (steps != runs.baseline.steps - runs.baseline.warmup_steps) return;
  for (const CountChange& change : count_changes(*runs.now.counts, *runs.baseline.counts)) {
    remarks.push_back(count_change_text(change, steps));
  }
}

}  // namespace

nlohmann::ordered_json run_comparison_to_json(const RunComparison& runs) {
  nlohmann::ordered_json json = document_of("run_comparison");
  const StepFigure figure = exact_figure(runs.baseline.summary.step_time, runs.now.summary.step_time);
  const auto before = static_cast<double>(runs.baseline.summary.step_time.*figure);
  const auto now = static_cast<double>(runs.now.summary.step_time.*figure);
  json["change"] = before > 0 ? nlohmann::ordered_json(now / before - 1) : nlohmann::ordered_json();
  json["files"] = {{"baseline", runs.baseline_name}, {"report", runs.name}};
  json["scenario_changes"] = runs.scenario_changes;
  json["remarks"] = comparison_remarks(runs);
  json["baseline"] = report_to_json(runs.baseline);
  json["report"] = report_to_json(runs.now);
  return json;
}

RunComparison run_comparison_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  RunComparison runs{.baseline_name = text_or_empty(root.required("files"), "baseline"),
                     .name = text_or_empty(root.required("files"), "report"),
                     .baseline = report_from_field(root.required("baseline")),
                     .now = report_from_field(root.required("report"))};
  for (const JsonField& change : root.required("scenario_changes").items()) {
    runs.scenario_changes.push_back(change.text());
  }
  reading.finish();
  return runs;
}

std::vector<Row> compared_rows(const RunComparison& runs) {
  std::vector<Row> rows;
  add_step(runs, rows);
  add_rates(runs, rows);
  add_memory(runs, rows);
  add_metrics(runs, rows);
  add_collectives(runs, rows);
  return rows;
}

std::vector<std::string> comparison_remarks(const RunComparison& runs) {
  std::vector<std::string> remarks;
  add_noise("the baseline", runs.baseline, remarks);
  add_noise("the run", runs.now, remarks);
  add_counts(runs, remarks);
  const auto add = [&](const std::vector<std::string>& changes) {
    remarks.insert(remarks.end(), changes.begin(), changes.end());
  };
  add(job_changes(runs.now, runs.baseline, true, runs.scenario_changes));
  // Settings of another engine have other names.
  if (runs.now.engine == runs.baseline.engine) add(model_changes(runs.now, runs.baseline));
  return remarks;
}

std::string run_comparison_text(const RunComparison& runs) {
  const auto line = [](const char* label, const std::string& name, const Report& report) {
    return fmt::format("{}: {}: {}\n  {}\n", label, shown(name), title_of(report), origin_text(report));
  };
  std::string text = line("baseline", runs.baseline_name, runs.baseline) + line("now", runs.name, runs.now) + "\n";
  TextTable table;
  table.add({"", "baseline", "now", "change"});
  table.add_rule();
  for (const Row& row : compared_rows(runs)) table.add({row.begin(), row.end()});
  text += table.text();
  Report holder;
  holder.notes = comparison_remarks(runs);
  return holder.notes.empty() ? text : text + "\n" + notes_text(holder);
}

}  // namespace tandem
