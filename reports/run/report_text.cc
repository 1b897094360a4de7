#include "reports/run/report_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "reports/base/text_table.h"
#include "reports/course/course_text.h"
#include "reports/run/evaluations_text.h"
#include "reports/run/explanation_text.h"
#include "topologies/base/shown.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr std::string_view kBytes = "_bytes";  // at the end of a metric's name

std::string plural(int count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string step_time_text(const StepTime& time) {
  std::string spread = "of one step";
  if (time.samples > 1) {
    spread = fmt::format("mean of {}; median {}, min {}, p95 {}, MAD {}", time.samples, time_text(time.median),
                         time_text(time.min), time_text(time.p95), time_text(time.median_absolute_deviation));
  }
  std::string text = fmt::format("step time   {:>12}   {}\n", time_text(time.mean), spread);
  if (const std::string longer = long_steps_text(time); !longer.empty()) text += fmt::format("{:27}{}\n", "", longer);
  return text;
}

// The detail may take several lines.
std::string rate_line(const ShownRate& rate) {
  const std::string head = fmt::format("{:<11} {:>12}   ", rate.name, rate.value);
  return wrapped_list(head, words_of(rate.detail), "");
}

std::string headline_figures(const Report& report) {
  std::string text = step_time_text(report.summary.step_time);
  text += fmt::format("throughput  {:>12}   {}\n", rate_text(report.throughput(), report.throughput_unit),
                      units_per_step_text(report));
  for (const ShownRate& rate : shown_rates(report)) text += rate_line(rate);
  text += expectation_text(report);
  if (report.scaling_efficiency && std::isfinite(*report.scaling_efficiency)) {
    text += fmt::format("scaling     {:>12}   of the throughput of {} single replicas\n",
                        percent_text(*report.scaling_efficiency), report.replicas);
  }
  const std::string assumptions = assumptions_text(report.assumptions, report.summary.step_time.mean);
  return assumptions.empty() ? text : text + "\n" + assumptions;
}

// "4th"
std::string ordinal(int number) {
  const bool is_teen = number / 10 % 10 == 1;
  const char* ending = is_teen            ? "th"
                       : number % 10 == 1 ? "st"
                       : number % 10 == 2 ? "nd"
                       : number % 10 == 3 ? "rd"
                                          : "th";
  return std::to_string(number) + ending;
}

// "  exposed input"
std::string label_of(const StepPart& part) {
  return "  " + with_blanks(part.name);
}

// "550.9 us of update (24.8 %)"
std::string share_text(Nanoseconds time, std::string_view name, Nanoseconds step) {
  return fmt::format("{} of {} ({})", time_text(time), name, share_of(time, step));
}

std::string hidden_text(const Report& report) {
  const PerStep& step = report.summary.per_step;
  std::vector<std::string> hidden;
  const auto add = [&](std::string_view name, Nanoseconds time) {
    if (time > 0) hidden.push_back(share_text(time, name, report.summary.step_time.mean));
  };
  add("input", step.input - step.exposed_input);
  add("communication", step.communication - step.exposed_communication);
  return wrapped_list("hidden behind these: ", hidden, ",");
}

std::string other_devices_text(const Report& report) {
  const auto& others = report.summary.other_devices;
  if (!others) return "";
  std::vector<std::string> parts;
  for (const StepPart& part : step_parts()) {
    const Nanoseconds time = others->per_step.*part.time;
    if (time > 0) parts.push_back(share_text(time, label_of(part).substr(2), report.summary.step_time.mean));
  }
  const std::string which = others->count == 1 ? "which trains no replica"
                                               : fmt::format("the busiest of {} that train no replica", others->count);
  return wrapped_list("", words_of(fmt::format("on {}, {}: {}", others->busiest, which, fmt::join(parts, ", "))), "");
}

std::string parts_text(const Report& report) {
  if (!report.has_parts()) {
    return fmt::format("where a step goes: not known (records: {})\n", name_of(report.records)) + waiting_text(report);
  }
  const auto share = [&](Nanoseconds time) {
    const Nanoseconds step = report.summary.step_time.mean;
    return step > 0 ? percent_text(static_cast<double>(time) / static_cast<double>(step)) : std::string("-");
  };
  TextTable table;
  table.add({"where a step goes, per device", "time", "of the step"});
  for (const StepPart& part : step_parts()) {
    const Nanoseconds time = report.summary.per_step.*part.time;
    if (part.time == &PerStep::other && time == 0) continue;
    table.add({label_of(part), time_text(time), share(time)});
  }
  return table.text() + hidden_text(report) + other_devices_text(report) + critical_path_text(report) +
         waiting_text(report);
}

std::string bandwidth_text(double bytes_per_s) {
  return std::isfinite(bytes_per_s) ? format_quantity(bytes_per_s, Dimension::bytes_per_second) : "-";
}

std::string rank_name(const Report& report, const CallShare& share) {
  return short_device_name(report.summary.ranks.at(static_cast<std::size_t>(share.rank)).device);
}

// Shows the waiting and the transfer of each rank in each collective in which any rank waits.
std::string ranks_text(const Report& report) {
  TextTable table;
  table.add({"collectives by rank", "size", "devices", "rank", "waiting", "transfer"});
  bool any = false;
  for (const CollectiveSummary& collective : report.summary.collectives) {
    for (const CallShare& share : collective.ranks) {
      table.add({"  " + collective.operation, size_text(collective.bytes), std::to_string(collective.devices),
                 rank_name(report, share), time_text(share.waiting), time_text(share.transfer)});
      any = true;
    }
  }
  return any ? "\n" + table.text() : "";
}

std::string collectives_text(const Report& report, bool all) {
  const std::vector<CollectiveSummary>& collectives = report.summary.collectives;
  if (collectives.empty()) return "";
  const ShownRows shown =
      all ? ShownRows{.count = collectives.size(), .more = ""} : shown_rows(collectives.size(), "--all");
  TextTable table;
  table.add({"collectives", "size", "devices", "calls/step", "waiting", "transfer", "algbw", "busbw"});
  std::string choices;
  std::vector<std::string> awaited;
  for (const CollectiveSummary& collective : std::span(collectives).first(shown.count)) {
    const std::string size = size_text(collective.bytes);
    table.add({"  " + collective.operation, size, std::to_string(collective.devices),
               std::to_string(collective.calls_per_step), time_text(collective.waiting_ns),
               time_text(collective.time_ns), bandwidth_text(collective.algbw), bandwidth_text(collective.busbw)});
    const std::string name = fmt::format("{} of {} on {}", collective.operation, size, collective.devices);
    if (const CallShare* last = awaited_rank(collective)) {
      awaited.push_back(fmt::format("{} for {}", name, rank_name(report, *last)));
    }
    if (!collective.algorithm.empty())
      choices += tandem::shown(fmt::format("  {}: {}", name, collective.algorithm)) + "\n";
  }
  return "\n" + table.text() + shown.more + choices + wrapped_list("  waiting: ", awaited, ",") +
         (all ? ranks_text(report) : "");
}

// Says which workers represented which others; if there are many, shows only a few.
std::string symmetry_text(const Report& report) {
  if (report.classes.empty()) return "";
  constexpr std::size_t kMost = 6;
  std::vector<std::string> items;
  for (const ReportedClass& one : report.classes) {
    if (items.size() == kMost) break;
    items.push_back(fmt::format("{} for {} ({})", one.representative, plural(one.workers, "worker"),
                                plural(one.devices, "device")));
  }
  const std::size_t more = report.classes.size() - items.size();
  if (more > 0) items.push_back(fmt::format("and {} more of {}", more, report.classes.size()));
  return wrapped_list("simulated   ", items, ",");
}

std::string learning_text(const Report& report) {
  std::string text;
  if (!report.loss.empty()) {
    text += fmt::format("loss        {:.6g} -> {:.6g} in {}\n", report.loss.front(), report.loss.back(),
                        plural(static_cast<int>(report.loss.size()), "step"));
  }
  for (const auto& [name, value] : report.metrics) {
    if (is_of_program_only(name, report)) continue;
    text += fmt::format("{:<11} {}\n", shown(metric_label(name)), metric_value_text(name, value));
  }
  return text;
}

}  // namespace

bool is_of_program_only(std::string_view metric, const Report& report) {
  return metric == "memory_peak_bytes" && report.memory.has_value();
}

std::string metric_value_text(std::string_view name, double value) {
  return name.ends_with(kBytes) ? format_quantity(value, Dimension::bytes) : count_text(value);
}

std::string_view metric_label(std::string_view name) {
  return name.ends_with(kBytes) ? name.substr(0, name.size() - kBytes.size()) : name;
}

std::string long_steps_text(const StepTime& time) {
  if (!time.long_steps) return "";
  const LongSteps& longer = *time.long_steps;
  const auto [length, others] = time_texts(longer.time, longer.others);
  const std::string which = longer.every > 1 ? fmt::format(" (every {})", ordinal(longer.every)) : "";
  return fmt::format("{} of {} steps take {}{}, the others {}", longer.count, time.samples, length, which, others);
}

std::string units_per_step_text(const Report& report) {
  return fmt::format("{:.6g} per step{}", report.units_of_step(), report.asynchronous ? " of each worker" : "");
}

std::string short_device_name(const std::string& device) {
  constexpr std::string_view kDevice = "/device:", kTask = "/task:";
  const std::size_t at = device.find(kDevice);
  if (at == std::string::npos) return device;
  const std::string name = device.substr(at + kDevice.size());
  const std::size_t task = device.find(kTask);
  return task == std::string::npos ? name : fmt::format("{} {}", device.substr(task + 1, at - task - 1), name);
}

std::string title_of(const Report& report) {
  std::string text = fmt::format("{}: {}", shown(report.scenario), plural(report.replicas, "replica"));
  if (report.workers > 1) text += " on " + plural(report.workers, "worker");
  if (report.parameter_servers > 0) text += " and " + plural(report.parameter_servers, "parameter server");
  if (!report.strategy.empty()) text += ", " + shown(report.strategy);
  if (!report.cross_device_ops.empty() && report.cross_device_ops != report.strategy)
    text += ", " + shown(report.cross_device_ops);
  return text;
}

std::string origin_text(const Report& report) {
  std::string text =
      fmt::format("{} on engine {}", report.deterministic ? "simulated" : "measured", shown(report.engine));
  if (!report.topology.empty()) {
    text += fmt::format(", topology {}", shown(report.topology));
    if (!report.topology_provenance.empty()) text += fmt::format(" (figures: {})", shown(report.topology_provenance));
  }
  return text;
}

std::string lost_text(const MachineUse& use) {
  std::string text =
      fmt::format("{} of the processor time that the run asked for went elsewhere", percent_text(use.lost()));
  for (const GpuUse& gpu : use.gpus) {
    if (gpu.slowed > 0) {
      text += fmt::format("; {} was held back by {} in {} of {} readings", gpu.gpu, fmt::join(gpu.slowed_by, " and "),
                          gpu.slowed, gpu.readings);
    }
    if (gpu.other_programs > 0) {
      text += fmt::format("; {} on {} took {} of its time", plural(gpu.other_programs, "other program"), gpu.gpu,
                          percent_text(gpu.others_share));
    }
  }
  return text;
}

std::string cores_text(const SharedCores& cores) {
  return fmt::format("{} on {}", plural(cores.devices, "device"), plural(cores.cores, "core"));
}

std::string settings_text(const std::string& label, const Report& report) {
  std::vector<std::string> items;
  for (const auto& [name, value] : report.settings) items.push_back(name + " " + value);
  return wrapped_list(label, items, ",");
}

std::string memory_line(const Report& report) {
  const MemoryNeed& need = *report.memory;
  const std::string moment = need.moment.empty() ? "" : "; most in " + need.moment;
  const ErrorInterval* const interval = report.memory_error ? report.memory_error->widest() : nullptr;
  const std::string error =
      interval == nullptr
          ? ""
          : fmt::format("; {} measured peaks were within {} of predicted ones: {}", level_text(interval->level),
                        interval_text(*interval), report.memory_error->basis);
  return wrapped_list("memory      ", words_of("a device " + memory_text(need) + moment + error), "");
}

std::string notes_text(const Report& report) {
  std::string text;
  for (const std::string& note : report.notes) text += wrapped_list("  - ", words_of(note), "");
  return text;
}

std::string faults_text(const Report& report) {
  return wrapped_list("WITH FAULTS ", report.faults, ";");
}

std::string report_text(const Report& report, bool all) {
  std::string text = faults_text(report) + title_of(report) + "\n" + origin_text(report) + "\n\n";
  if (report.is_disturbed()) text += "DISTURBED: " + shown(lost_text(*report.machine_use)) + ".\n\n";
  if (report.course) text += course_text(*report.course) + "\nundisturbed steps\n";
  text += headline_figures(report) + "\n" + parts_text(report) + collectives_text(report, all);
  if (report.evaluations) text += "\n" + evaluations_text(*report.evaluations);
  if (const std::string learning = learning_text(report); !learning.empty()) text += "\n" + learning;
  if (const std::string symmetry = symmetry_text(report); !symmetry.empty()) text += "\n" + symmetry;
  if (report.memory) text += "\n" + memory_line(report);
  if (const std::string settings = settings_text("settings    ", report); !settings.empty()) text += "\n" + settings;
  std::vector<std::string> machine;
  if (!report.machine.empty()) machine.push_back(report.machine);
  if (report.cores && report.cores->are_short()) machine.push_back(cores_text(*report.cores));
  if (report.machine_use && !report.is_disturbed()) machine.push_back(lost_text(*report.machine_use));
  text += wrapped_list("machine     ", machine, ";");
  if (!report.notes.empty()) text += "\nnotes\n" + notes_text(report);
  return text;
}

}  // namespace tandem
