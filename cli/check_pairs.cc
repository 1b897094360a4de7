#include "cli/check_pairs.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/launch.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/verdicts.h"
#include "reports/paired_check.h"
#include "reports/report_json.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string last_line_of(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

class PairedLaunches {
 public:
  PairedLaunches(std::string scenario, const PairFlags& flags, std::uint64_t seed)
      : scenario_(std::move(scenario)),
        flags_(flags),
        order_(seed),
        this_program_(fs::read_symlink("/proc/self/exe")) {}

  void launch_pair() {
    launch_next();
    launch_next();
  }
  const std::vector<Launch>& launches() const { return launches_; }

 private:
  void launch_next() {
    const int number = static_cast<int>(launches_.size());
    const bool is_new = order_.is_new(number);
    const std::string program = is_new ? this_program_ : flags_.program;
    const std::string name = fmt::format("launch {} ({})", number + 1, program);
    const LaunchResult result = launch({program, "run", scenario_, "--json", "--quiet"}, flags_.launch_timeout_s);
    if (result.exit_code != 0) {
      throw RunError(fmt::format("{} ended with exit code {}: {}", name, result.exit_code, last_line_of(result.error)));
    }
    Report report = report_from_json(result.output, name);
    if (report.deterministic) {
      throw InputError({{.file = scenario_,
                         .path = "engine",
                         .message = "its times repeat exactly, and one run decides: use --baseline"}});
    }
    check_comparable(report, launches_.empty() ? report : launches_.front().report, name);
    launches_.push_back({is_new, std::move(report)});
  }

  const std::string scenario_;
  const PairFlags& flags_;
  const LaunchOrder order_;
  const std::string this_program_;
  std::vector<Launch> launches_;
};

void check_program(const std::string& program) {
  if (fs::is_regular_file(program)) return;
  throw InputError({{.file = program, .path = "", .message = "no such program; --against takes the path of a tandem"}});
}

}  // namespace

int check_pairs(const CommonOptions& common, const std::string& scenario, const PairFlags& flags) {
  const Output output(common);
  check_program(flags.program);
  const Scenario checked = scenario_from(scenario);
  const std::uint64_t seed = flags.seed.value_or(std::random_device()());
  PairedLaunches pairs(scenario, flags, seed);
  ProgressLine progress(common);
  const auto show = progress.of_stages(checked.name);
  std::optional<PairedResult> result;
  while (!result) {
    const auto done = static_cast<int>(pairs.launches().size()) / 2;
    show("pair of launches", done, std::prev(std::end(kPairedLooks))->pairs);
    pairs.launch_pair();
    result = look_at(log_ratios_of(pairs.launches()), flags.margin);
  }
  progress.finish();
  add_figures(*result, pairs.launches());
  if (output.json()) {
    output.write_json(paired_check_to_json(*result, pairs.launches(), seed));
  } else {
    const std::string text = paired_check_text(*result, pairs.launches());
    output.write_text(with_colored_verdict(text, result->verdict, common));
  }
  if (output.wants_page()) output.write_page(paired_check_to_json(*result, pairs.launches(), seed));
  return exit_code_of(result->verdict);
}

}  // namespace tandem
