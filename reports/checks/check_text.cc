#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/checks/check.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "topologies/base/shown.h"

namespace tandem {

nlohmann::ordered_json check_to_json(const CheckResult& result, const Report& report, const Report& baseline) {
  using Json = nlohmann::ordered_json;
  Json json = document_of("check");
  json["verdict"] = name_of(result.verdict);
  json["change"] = result.change;
  json["tolerance"] = result.tolerance;
  json["noise"] = result.noise;
  json["reasons"] = result.reasons;
  json["differences"] = Json::array();
  for (const CheckedFigure& figure : result.differences) {
    json["differences"].push_back(
        {{"name", figure.name}, {"baseline_ns", figure.baseline_ns}, {"current_ns", figure.current_ns}});
  }
  json["largest_difference"] = nullptr;
  if (const auto& largest = result.largest_difference) {
    json["largest_difference"] = {{"name", largest->name},
                                  {"baseline_ns", largest->baseline_ns},
                                  {"current_ns", largest->current_ns},
                                  {"share", result.largest_share ? Json(*result.largest_share) : Json()}};
  }
  if (!result.accept.empty()) json["accept"] = result.accept;
  json["report"] = report_to_json(report);
  json["baseline"] = report_to_json(baseline);
  return json;
}

Verdict verdict_from_json(const JsonField& field) {
  const std::string word = field.text();
  for (const Verdict verdict :
       {Verdict::ok, Verdict::improved, Verdict::regressed, Verdict::model_changed, Verdict::inconclusive}) {
    if (word == name_of(verdict)) return verdict;
  }
  if (!word.empty()) field.error("'" + word + "' is no verdict");
  return Verdict::inconclusive;
}

StoredCheck check_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  StoredCheck check;
  check.result.verdict = verdict_from_json(root.required("verdict"));
  check.result.change = root.required("change").number_or_null();
  check.result.tolerance = root.required("tolerance").number();
  check.result.noise = root.required("noise").number();
  for (const JsonField& reason : root.required("reasons").items()) check.result.reasons.push_back(reason.text());
  check.result.accept = text_or_empty(root, "accept");
  for (const JsonField& item : root.required("differences").items()) {
    check.result.differences.push_back({.name = item.required("name").text(),
                                        .baseline_ns = item.required("baseline_ns").count(),
                                        .current_ns = item.required("current_ns").count()});
  }
  check.report = report_from_field(root.required("report"));
  check.baseline = report_from_field(root.required("baseline"));
  check.result.figure = compared_figure(check.report, check.baseline);
  reading.finish();
  return check;
}

std::string check_text(const CheckResult& result, const Report& report, const Report& baseline) {
  std::string text = fmt::format("{}: {}\n", title_of(report), name_of(result.verdict));
  const auto [step, before] =
      time_texts(report.summary.step_time.*result.figure, baseline.summary.step_time.*result.figure);
  text += fmt::format("step time {}, baseline {} ({})\n", step, before, error_text(result.change));
  for (std::size_t i = 0; i < result.reasons.size(); ++i)
    text += (i == 0 ? "" : "  - ") + shown(result.reasons[i]) + "\n";
  if (!result.accept.empty()) text += fmt::format("to accept it: {}\n", shown(result.accept));
  if (result.differences.empty()) return text;
  TextTable table;
  table.add({"what differs", "baseline", "now", "change"});
  table.add_rule();
  const ShownRows rows = shown_rows(result.differences.size(), "--json");
  for (const CheckedFigure& figure : std::span(result.differences).first(rows.count)) {
    const auto [then, now] = time_texts(figure.baseline_ns, figure.current_ns);
    table.add({figure.name, then, now, change_text(figure)});
  }
  return text + "\n" + table.text() + rows.more;
}

}  // namespace tandem
