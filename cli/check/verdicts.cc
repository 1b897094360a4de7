#include "cli/check/verdicts.h"

#include <iostream>

#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "topologies/base/error.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

// A simulation that became faster ends with 1, too, until it is stored.
Color color_of(const CheckedScenario& checked) {
  if (checked.exit_code == kOk) return Color::green;
  return checked.exit_code == kNotMet && checked.outcome() != name_of(Verdict::improved) ? Color::red : Color::yellow;
}

}  // namespace

int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
    case Verdict::improved:
      return kOk;
    case Verdict::regressed:
    case Verdict::model_changed:
      return kNotMet;
    case Verdict::inconclusive:
      return kInconclusive;
  }
  TANDEM_UNREACHABLE("a verdict without an exit code");
}

std::string with_colored_verdict(const CheckedScenario& checked, const CommonOptions& common) {
  std::string text = shown_output(checked.text);
  if (!common.output.empty()) return text;
  const std::string word(name_of(checked.verdict));
  const std::size_t at = text.find(": " + word + "\n");
  if (at == std::string::npos) return text;
  return text.replace(at + 2, word.size(), colored(word, color_of(checked), std::cout, common.no_color));
}

}  // namespace tandem
