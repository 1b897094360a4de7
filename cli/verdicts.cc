#include "cli/verdicts.h"

#include <iostream>

#include "cli/exit_codes.h"
#include "cli/output.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

Color color_of(Verdict verdict) {
  const int code = exit_code_of(verdict);
  return code == kOk ? Color::green : code == kNotMet ? Color::red : Color::yellow;
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

std::string with_colored_verdict(std::string text, Verdict verdict, const CommonOptions& common) {
  if (!common.output.empty()) return text;
  const std::string word(name_of(verdict));
  const std::size_t at = text.find(": " + word + "\n");
  if (at == std::string::npos) return text;
  return text.replace(at + 2, word.size(), colored(word, color_of(verdict), std::cout, common.no_color));
}

}  // namespace tandem
