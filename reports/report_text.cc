#include "reports/report_text.h"

#include <fmt/format.h>

#include <cmath>

#include "reports/text_table.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

std::string plural(int count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// Where the numbers come from: an engine that measures, or a model of a topology.
std::string origin_of(const Report& report) {
  std::string text = fmt::format("{} on engine {}", report.deterministic ? "simulated" : "measured", report.engine);
  if (!report.topology.empty()) {
    text += fmt::format(", topology {}", report.topology);
    if (!report.topology_provenance.empty()) text += fmt::format(" (figures: {})", report.topology_provenance);
  }
  return text;
}

std::string step_time_text(const StepTime& time) {
  std::string spread = fmt::format("median of {}", plural(time.samples, "step"));
  if (time.samples > 1) {
    spread += fmt::format("; min {}, p95 {}, MAD {}", time_text(time.min), time_text(time.p95),
                          time_text(time.median_absolute_deviation));
  }
  return fmt::format("step time   {:>12}   {}\n", time_text(time.median), spread);
}

std::string headline_figures(const Report& report) {
  std::string text = step_time_text(report.summary.step_time);
  text +=
      fmt::format("throughput  {:>12}   {:.6g} per step{}\n", rate_text(report.throughput(), report.throughput_unit),
                  report.asynchronous ? report.units_per_step / report.workers : report.units_per_step,
                  report.asynchronous ? " of each worker" : "");
  if (report.scaling_efficiency && std::isfinite(*report.scaling_efficiency)) {
    text += fmt::format("scaling     {:>12}   of the throughput of {} single replicas\n",
                        percent_text(*report.scaling_efficiency), report.replicas);
  }
  return text;
}

std::string phases_text(const Report& report) {
  const PerStep& phases = report.summary.per_step;
  const auto share = [&](Nanoseconds time) {
    const Nanoseconds step = report.summary.step_time.median;
    return step > 0 ? percent_text(static_cast<double>(time) / static_cast<double>(step)) : std::string("-");
  };
  TextTable table;
  table.add({"where a step goes, per device", "time", "of the step"});
  table.add({"  compute", time_text(phases.compute), share(phases.compute)});
  table.add({"  communication", time_text(phases.communication), share(phases.communication)});
  table.add({"    of it exposed", time_text(phases.exposed_communication), share(phases.exposed_communication)});
  table.add({"  update", time_text(phases.update), share(phases.update)});
  table.add({"  input", time_text(phases.input), share(phases.input)});
  table.add({"  idle", time_text(phases.idle), share(phases.idle)});
  return table.text();
}

std::string bandwidth_text(double bytes_per_s) {
  return std::isfinite(bytes_per_s) ? format_quantity(bytes_per_s, Dimension::bytes_per_second) : "-";
}

std::string collectives_text(const Report& report) {
  if (report.summary.collectives.empty()) return "";
  TextTable table;
  table.add({"collectives", "size", "devices", "calls/step", "time", "algbw", "busbw"});
  std::string choices;
  for (const CollectiveSummary& collective : report.summary.collectives) {
    const std::string size = size_text(collective.bytes);
    table.add({"  " + collective.operation, size, std::to_string(collective.devices),
               std::to_string(collective.calls_per_step), time_text(collective.time_ns),
               bandwidth_text(collective.algbw), bandwidth_text(collective.busbw)});
    if (collective.algorithm.empty()) continue;
    choices +=
        fmt::format("  {} of {} on {}: {}\n", collective.operation, size, collective.devices, collective.algorithm);
  }
  return "\n" + table.text() + choices;
}

std::string learning_text(const Report& report) {
  std::string text;
  if (!report.loss.empty()) {
    text += fmt::format("loss        {:.6g} -> {:.6g} in {}\n", report.loss.front(), report.loss.back(),
                        plural(static_cast<int>(report.loss.size()), "step"));
  }
  for (const auto& [name, value] : report.metrics) text += fmt::format("{:<11} {:.6g}\n", name, value);
  return text;
}

}  // namespace

std::string title_of(const Report& report) {
  std::string text = fmt::format("{}: {}", report.scenario, plural(report.replicas, "replica"));
  if (report.workers > 1) text += " on " + plural(report.workers, "worker");
  if (report.parameter_servers > 0) text += " and " + plural(report.parameter_servers, "parameter server");
  if (!report.strategy.empty()) text += ", " + report.strategy;
  if (!report.cross_device_ops.empty() && report.cross_device_ops != report.strategy)
    text += ", " + report.cross_device_ops;
  return text;
}

std::string settings_text(const std::string& label, const Report& report) {
  std::vector<std::string> items;
  for (const auto& [name, value] : report.settings) items.push_back(name + " " + value);
  return wrapped_list(label, items, ",");
}

std::string notes_text(const Report& report) {
  std::string text;
  for (const std::string& note : report.notes) text += wrapped_list("  - ", words_of(note), "");
  return text;
}

std::string report_text(const Report& report) {
  std::string text = title_of(report) + "\n" + origin_of(report) + "\n\n";
  text += headline_figures(report) + "\n" + phases_text(report) + collectives_text(report);
  if (const std::string learning = learning_text(report); !learning.empty()) text += "\n" + learning;
  if (const std::string settings = settings_text("settings    ", report); !settings.empty()) text += "\n" + settings;
  if (!report.notes.empty()) text += "\nnotes\n" + notes_text(report);
  return text;
}

}  // namespace tandem
