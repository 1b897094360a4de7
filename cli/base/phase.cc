#include "cli/base/phase.h"

#include <fmt/format.h>

#include <cstdio>

#include "engine/launched_job.h"
#include "reports/base/text_table.h"
#include "reports/run/report_text.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

bool& are_shown() {
  static bool shown = false;
  return shown;
}

}  // namespace

void Phase::show_all() {
  are_shown() = true;
}

Phase::~Phase() {
  if (!are_shown() || !reports_for_job()) return;
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin_;
  std::fputs(fmt::format("tandem: {}: {}\n", shown(what_), time_text(taken.count())).c_str(), stderr);
}

}  // namespace tandem
