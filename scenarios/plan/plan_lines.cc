#include "scenarios/plan/plan_lines.h"

#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/sweep/sweep_json.h"

namespace tandem {
namespace {

using LineJson = nlohmann::ordered_json;

constexpr int kFormat = 1;  // of the lines; to be raised when what they mean changes

struct NamedKind {
  KeptOfPlan::What what;
  const char* name;
};
constexpr NamedKind kKinds[] = {{KeptOfPlan::What::seen, "seen"},
                                {KeptOfPlan::What::whole, "whole"},
                                {KeptOfPlan::What::too_long, "too long"},
                                {KeptOfPlan::What::variant, "variant"}};

struct NamedFigure {
  double PlannedPoint::*figure;
  const char* name;
};
constexpr NamedFigure kFigures[] = {{&PlannedPoint::least_step_s, "least_step_s"},
                                    {&PlannedPoint::units, "units"},
                                    {&PlannedPoint::price_per_s, "price_per_s"},
                                    {&PlannedPoint::power_w, "power_w"}};

KeptOfPlan::What kind_of(const JsonField& field) {
  const std::string name = field.text();
  for (const NamedKind& kind : kKinds) {
    if (name == kind.name) return kind.what;
  }
  field.error("is nothing that plans keep: '" + name + "'");
  return KeptOfPlan::What::seen;
}

}  // namespace

std::string line_of_plan(const KeptOfPlan& kept) {
  LineJson json = {{"plan", kFormat}};
  for (const NamedKind& kind : kKinds) {
    if (kept.what == kind.what) json["kept"] = kind.name;
  }
  if (kept.what == KeptOfPlan::What::seen) {
    for (const auto& [figure, name] : kFigures) json[name] = kept.planned.*figure;
  }
  if (kept.what == KeptOfPlan::What::too_long) json["seconds"] = kept.seconds;
  if (!kept.files.empty()) json["files_hash"] = kept.files;
  json["point"] = point_to_json(kept.point);
  return json.dump(-1, ' ', false, LineJson::error_handler_t::replace) + "\n";
}

std::optional<KeptOfPlan> kept_of_line(const LineOfPlan& line) {
  const JsonOrigin origin(line.file, line.text, line.number);
  const LineJson json = origin.parse();
  Reading reading(json, origin);
  const JsonField& root = reading.root();
  if (root.required("plan").whole_number() != kFormat) return std::nullopt;
  KeptOfPlan kept{.what = kind_of(root.required("kept"))};
  if (kept.what == KeptOfPlan::What::seen) {
    for (const auto& [figure, name] : kFigures) kept.planned.*figure = root.required(name).number();
  }
  if (kept.what == KeptOfPlan::What::too_long) kept.seconds = root.required("seconds").number();
  kept.files = text_or_empty(root, "files_hash");
  kept.point = point_from_json(root.required("point"));
  reading.finish();
  return kept;
}

}  // namespace tandem
