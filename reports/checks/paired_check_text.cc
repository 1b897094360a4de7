#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/checks/paired_check.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

std::string text_of(const CentreInterval& interval) {
  return interval_text(interval.lower, interval.upper);
}

nlohmann::ordered_json change_json(const CentreInterval& change) {
  return {{"estimate", change.estimate}, {"lower", change.lower}, {"upper", change.upper}};
}

CentreInterval stored_change(const JsonField& field) {
  return {.estimate = field.required("estimate").number_or_null(),
          .lower = field.required("lower").number_or_null(),
          .upper = field.required("upper").number_or_null()};
}

PairedFigure stored_figure(const JsonField& field) {
  const JsonField change = field.required("change");
  PairedFigure figure{.name = field.required("name").text(), .estimate = change.required("estimate").number_or_null()};
  if (!change.required("lower").is_null() && !change.required("upper").is_null()) figure.change = stored_change(change);
  figure.adjusted_p_value = field.required("adjusted_p_value").number();
  return figure;
}

std::string counts_reason(const PairedResult& result) {
  if (result.verdict == Verdict::inconclusive) return "the run is asynchronous, or its launches say no exact counts";
  if (result.counts.empty()) return "the exact counts of the work are equal";
  std::vector<std::string> texts;
  for (const CountChange& change : result.counts) texts.push_back(count_change_text(change, result.measured_steps));
  return fmt::format("the work differs: {}", fmt::join(texts, ", "));
}

// "; cpu-time and wall-clock are too noisy here to decide"
std::string undecided_text(const PairedResult& result) {
  if (result.undecided.empty()) return "";
  return fmt::format("; {} too noisy here to decide",
                     result.undecided.size() == 1 ? result.undecided.front() + " is"
                                                  : fmt::format("{} are", fmt::join(result.undecided, " and ")));
}

// Without the disturbance.
std::string interval_reason(const PairedResult& result) {
  if (result.decided_by == "counts") return counts_reason(result);
  if (result.decided_by == "op-time" && !result.op_change) return "the launches do not say the time of their ops";
  if (result.decided_by == "cpu-time" && !result.cpu_change) return "the launches do not say their processor time";
  const char* const figure = result.decided_by == "op-time"    ? "of the time of ops "
                             : result.decided_by == "cpu-time" ? "of the processor time "
                                                               : "";
  const std::string margin = percent_text(result.margin);
  switch (result.verdict) {
    case Verdict::regressed:
      return fmt::format("the whole interval {}is above the margin of {}", figure, margin);
    case Verdict::improved:
      return fmt::format("the whole interval {}is below the margin of {}", figure, margin);
    case Verdict::ok:
      return fmt::format("the whole interval {}is inside the margin of {}{}", figure, margin, undecided_text(result));
    default:
      break;
  }
  const std::string needed = result.disturbance.prevents_advice() ? "on such a machine more pairs may not help"
                             : result.pairs_needed
                                 ? fmt::format("about {} pairs would decide", *result.pairs_needed)
                                 : "the change is so near the margin that no number of pairs is stated";
  return fmt::format("the interval {}crosses the margin of {}; {}", figure, margin, needed);
}

PairedDisturbance stored_disturbance(const JsonField& root) {
  const JsonField field = root.optional("disturbance");  // not in documents of earlier versions
  if (!field.present()) return {};
  return {.launches = field.required("launches").small_count(),
          .disturbed = field.required("disturbed").small_count(),
          .median_lost = field.required("median_lost").number()};
}

}  // namespace

std::string disturbance_text(const PairedDisturbance& disturbance) {
  if (disturbance.disturbed == 0) return "";
  std::string text = fmt::format("{} of {} launches were disturbed", disturbance.disturbed, disturbance.launches);
  if (disturbance.median_lost > 0) text += fmt::format("; the median one lost {:.0f} %", disturbance.median_lost * 100);
  return text;
}

std::string paired_reason(const PairedResult& result) {
  const std::string disturbed = disturbance_text(result.disturbance);
  return disturbed.empty() ? interval_reason(result) : disturbed + "; " + interval_reason(result);
}

nlohmann::ordered_json paired_check_to_json(const PairedResult& result, const std::vector<Launch>& launches,
                                            std::uint64_t seed) {
  using Object = nlohmann::ordered_json;
  Object json = document_of("paired_check");
  json["title"] = title_of(launches.front().report);
  json["verdict"] = name_of(result.verdict);
  json["margin"] = result.margin;
  json["change"] = change_json(result.change);
  json["decided_by"] = result.decided_by;
  if (result.op_change) json["op_change"] = change_json(*result.op_change);
  if (result.cpu_change) json["cpu_change"] = change_json(*result.cpu_change);
  if (!result.undecided.empty()) json["undecided"] = result.undecided;
  if (!result.counts.empty()) {
    json["measured_steps"] = result.measured_steps;
    json["counts"] = Object::array();
    for (const CountChange& change : result.counts) {
      json["counts"].push_back({{"name", change.name}, {"old", change.before}, {"new", change.now}});
    }
  }
  json["confidence"] = 1 - 2 * result.level;
  json["pairs"] = result.pairs;
  json["disturbance"] = {{"launches", result.disturbance.launches},
                         {"disturbed", result.disturbance.disturbed},
                         {"median_lost", result.disturbance.median_lost}};
  if (result.verdict == Verdict::inconclusive) {
    json["pairs_needed"] = result.pairs_needed ? Object(*result.pairs_needed) : Object();
  }
  json["seed"] = seed;
  json["launches"] = Object::array();
  const StepFigure compared = compared_figure(launches);
  json["figure"] = name_of(compared);
  for (const Launch& launch : launches) {
    json["launches"].push_back({{"program", launch.is_new ? "new" : "old"},
                                {"tandem_version", launch.report.tandem_version},
                                {"step_time_ns", launch.report.summary.step_time.*compared},
                                {"disturbed", launch.report.is_disturbed()}});
    if (const auto& use = launch.report.machine_use) json["launches"].back()["lost"] = use->lost();
  }
  json["figures"] = Object::array();
  for (const PairedFigure& figure : result.figures) {
    Object change = {{"estimate", figure.estimate}, {"lower", nullptr}, {"upper", nullptr}};
    if (figure.change) change = change_json(*figure.change);
    json["figures"].push_back(
        {{"name", figure.name}, {"change", std::move(change)}, {"adjusted_p_value", figure.adjusted_p_value}});
  }
  return json;
}

StoredPairedCheck paired_check_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  StoredPairedCheck check{.title = text_or_empty(root, "title"), .result = {}};
  if (check.title.empty()) check.title = "this program against another one";  // of an earlier version
  PairedResult& result = check.result;
  result.verdict = verdict_from_json(root.required("verdict"));
  result.margin = root.required("margin").number();
  result.change = stored_change(root.required("change"));
  if (const JsonField by = root.optional("decided_by"); by.present()) result.decided_by = by.text();
  if (const JsonField ops = root.optional("op_change"); ops.present()) result.op_change = stored_change(ops);
  if (const JsonField cpu = root.optional("cpu_change"); cpu.present()) result.cpu_change = stored_change(cpu);
  for (const JsonField& name : root.optional("undecided").items()) result.undecided.push_back(name.text());
  if (const JsonField steps = root.optional("measured_steps"); steps.present()) {
    result.measured_steps = steps.small_count();
  }
  for (const JsonField& item : root.optional("counts").items()) {
    result.counts.push_back({.name = item.required("name").text(),
                             .before = item.required("old").whole_number(),
                             .now = item.required("new").whole_number()});
  }
  result.level = (1 - root.required("confidence").number()) / 2;
  result.pairs = root.required("pairs").small_count();
  result.disturbance = stored_disturbance(root);
  const JsonField needed = root.optional("pairs_needed");
  if (needed.present() && !needed.is_null()) result.pairs_needed = needed.small_count();
  check.seed = static_cast<std::uint64_t>(root.required("seed").whole_number());
  for (const JsonField& item : root.required("figures").items()) result.figures.push_back(stored_figure(item));
  reading.finish();
  return check;
}

std::string paired_check_text(const StoredPairedCheck& check) {
  const PairedResult& result = check.result;
  std::string text = fmt::format("{}: {}\n", shown(check.title), name_of(result.verdict));
  if (const std::string disturbed = disturbance_text(result.disturbance); !disturbed.empty()) text += disturbed + "\n";
  std::string interval;
  if (!std::isnan(result.change.lower)) {
    interval = fmt::format(", {:.0f} % interval {}", 100 * (1 - 2 * result.level), text_of(result.change));
  }
  text += fmt::format("step time {}{}, {} pair{} of launches (--seed {})\n", error_text(result.change.estimate),
                      interval, result.pairs, result.pairs == 1 ? "" : "s", check.seed);
  if (result.op_change) {
    text += fmt::format("time of ops {}, interval {}\n", error_text(result.op_change->estimate),
                        text_of(*result.op_change));
  }
  if (result.cpu_change) {
    text += fmt::format("processor time {}, interval {}\n", error_text(result.cpu_change->estimate),
                        text_of(*result.cpu_change));
  }
  text += shown(interval_reason(result)) + "\n";
  if (result.figures.empty()) return text;
  TextTable table;
  table.add({"for information", "change", "interval (Holm)", "p of no change (Holm)"});
  table.add_rule();
  const ShownRows rows = shown_rows(result.figures.size(), "--json");
  for (const PairedFigure& figure : std::span(result.figures).first(rows.count)) {
    table.add({figure.name, error_text(figure.estimate), figure.change ? text_of(*figure.change) : "-",
               fmt::format("{:.3f}", figure.adjusted_p_value)});
  }
  return text + "\n" + table.text() + rows.more;
}

}  // namespace tandem
