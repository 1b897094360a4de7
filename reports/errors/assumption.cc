#include "reports/errors/assumption.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "topologies/base/shown.h"

namespace tandem {

nlohmann::ordered_json assumptions_to_json(const std::vector<Assumption>& assumptions) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Assumption& one : assumptions) {
    json.push_back({{"figure", one.figure},
                    {"value", one.value},
                    {"source", one.source},
                    {"from", one.from},
                    {"to", one.to},
                    {"step_time_ns_from", one.step_from},
                    {"step_time_ns_to", one.step_to}});
  }
  return json;
}

std::vector<Assumption> assumptions_from_json(const JsonField& list) {
  std::vector<Assumption> assumptions;
  for (const JsonField& item : list.items()) {
    assumptions.push_back({.figure = item.required("figure").text(),
                           .value = item.required("value").text(),
                           .source = item.required("source").text(),
                           .from = item.required("from").text(),
                           .to = item.required("to").text(),
                           .step_from = item.required("step_time_ns_from").count(),
                           .step_to = item.required("step_time_ns_to").count()});
  }
  return assumptions;
}

std::string assumptions_text(const std::vector<Assumption>& assumptions, Nanoseconds step) {
  if (assumptions.empty() || step <= 0) return "";
  const auto change_to = [step](Nanoseconds time) {
    return error_text(static_cast<double>(time) / static_cast<double>(step) - 1);
  };
  TextTable table(1);
  table.add({"moved most by", "assumed", "may be", "a step then takes", ""});
  for (const Assumption& one : assumptions) {
    table.add({"  " + shown(one.figure), shown(one.value), fmt::format("{} .. {}", shown(one.from), shown(one.to)),
               fmt::format("{} .. {}", time_text(one.step_from), time_text(one.step_to)),
               fmt::format("{} .. {}", change_to(one.step_from), change_to(one.step_to))});
  }
  return table.text();
}

}  // namespace tandem
