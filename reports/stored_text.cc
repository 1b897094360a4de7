#include "reports/stored_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "reports/base/json_fields.h"
#include "reports/blame/blame_text.h"
#include "reports/checks/check.h"
#include "reports/checks/history.h"
#include "reports/checks/paired_check.h"
#include "reports/checks/suite.h"
#include "reports/comparison/compare.h"
#include "reports/comparison/exploration.h"
#include "reports/comparison/run_comparison.h"
#include "reports/comparison/strategy_comparison.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "reports/sweep/sweep_json.h"

namespace tandem {
namespace {

using Document = nlohmann::ordered_json;

std::string stored_report(const Document& document, const JsonOrigin& origin, bool all) {
  return report_text(report_from_document(document, origin), all);
}

std::string stored_comparison(const Document& document, const JsonOrigin& origin, bool all) {
  return comparisons_text(comparisons_from_json(document, origin), all);
}

std::string stored_strategies(const Document& document, const JsonOrigin& origin, bool /*all*/) {
  return strategy_comparison_text(strategy_comparison_from_json(document, origin));
}

std::string stored_run_comparison(const Document& document, const JsonOrigin& origin, bool /*all*/) {
  return run_comparison_text(run_comparison_from_json(document, origin));
}

std::string stored_check(const Document& document, const JsonOrigin& origin, bool /*all*/) {
  const auto [result, report, baseline] = check_from_json(document, origin);
  return check_text(result, report, baseline);
}

std::string stored_paired_check(const Document& document, const JsonOrigin& origin, bool /*all*/) {
  return paired_check_text(paired_check_from_json(document, origin));
}

std::string stored_history_check(const Document& document, const JsonOrigin& origin, bool /*all*/) {
  return history_check_text(history_check_from_json(document, origin));
}

std::string stored_suite(const Document& document, const JsonOrigin& origin, bool /*all*/) {
  return suite_text(suite_from_json(document, origin));
}

std::string stored_history(const Document& document, const JsonOrigin& origin, bool /*all*/) {
  const StoredHistory history = history_from_json(document, origin);
  return history_text(history.series, history.margin);
}

std::string stored_sweep(const Document& document, const JsonOrigin& origin, bool all) {
  return sweep_text(sweep_from_json(document, origin), all);
}

std::string stored_exploration(const Document& document, const JsonOrigin& origin, bool /*all*/) {
  return exploration_text(exploration_from_json(document, origin));
}

std::string stored_blame(const Document& document, const JsonOrigin& origin, bool all) {
  return blame_text(blame_from_json(document, origin), all);
}

struct StoredKind {
  const char* name;
  std::string (*text)(const Document& document, const JsonOrigin& origin, bool all);
};
constexpr std::array kStoredKinds{StoredKind{"report", stored_report},
                                  StoredKind{"comparison", stored_comparison},
                                  StoredKind{"run_comparison", stored_run_comparison},
                                  StoredKind{"strategy_comparison", stored_strategies},
                                  StoredKind{"check", stored_check},
                                  StoredKind{"paired_check", stored_paired_check},
                                  StoredKind{"history_check", stored_history_check},
                                  StoredKind{"suite", stored_suite},
                                  StoredKind{"sweep", stored_sweep},
                                  StoredKind{"history", stored_history},
                                  StoredKind{"exploration", stored_exploration},
                                  StoredKind{"blame", stored_blame}};

}  // namespace

std::string stored_text(const nlohmann::ordered_json& document, const JsonOrigin& origin, bool all) {
  const std::string kind =
      document.is_object() && document.contains("kind") && document["kind"].is_string() ? document["kind"] : "";
  std::vector<std::string> names;
  for (const StoredKind& known : kStoredKinds) {
    if (known.name == kind) return known.text(document, origin, all);
    names.emplace_back(known.name);
  }
  refuse_kind(document, origin, fmt::format("which has no text; those that have one: {}", fmt::join(names, ", ")));
}

}  // namespace tandem
