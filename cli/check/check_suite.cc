#include "cli/check/check_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/base/exit_codes.h"
#include "cli/base/interrupt.h"
#include "cli/base/load.h"
#include "cli/check/check_exact.h"
#include "cli/check/check_history.h"
#include "cli/check/check_pairs.h"
#include "engine/engine_info.h"
#include "reports/base/signed_rank.h"
#include "topologies/base/error.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool is_yaml(const fs::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml";
}

std::vector<std::string> files_of_folder(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_yaml(entry.path()) && !entry.is_directory()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> files_of_list(const std::string& list) {
  std::vector<std::string> files;
  std::istringstream lines(read_input_file(list));
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    line.erase(0, line.find_first_not_of(" \t\r"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) files.push_back((fs::path(list).parent_path() / line).string());
  }
  return files;
}

CheckedScenario failed_with(CheckedScenario checked, ExitCode code, std::string reason) {
  checked.state = CheckState::failed;
  checked.exit_code = code;
  checked.reason = std::move(reason);
  return checked;
}

// Turns the exception that is being handled into a scenario's result.
CheckedScenario failure_of(CheckedScenario checked) {
  try {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const InputError& error) {
    const Diagnostic& first = error.diagnostics().front();
    if (!first.file.empty()) checked.file = first.file;
    checked.line = std::max(1, first.line);
    return failed_with(std::move(checked), kBadInput, error.what());
  } catch (const UnavailableError& error) {
    return failed_with(std::move(checked), kUnavailable, error.what());
  } catch (const std::exception& error) {
    if (interrupt_requested()) throw Interrupted();
    return failed_with(std::move(checked), kRunFailed, error.what());
  }
}

// A scenario that was read, and its launches, whose verdict depends on those of other scenarios.
struct PendingCheck {
  std::size_t place = 0;  // in the suite
  Scenario scenario;
  std::unique_ptr<PairedLaunches> pairs{};
  std::unique_ptr<HistoryCheck> history{};

  bool models_a_machine() const { return engine_info(scenario.engine.name).needs_topology; }
};

class SuiteCheck {
 public:
  SuiteCheck(const CheckFlags& flags, ProgressLine& progress)
      : flags_(flags), progress_(progress), has_many_(is_suite(flags.target)) {}

  CheckedScenarios run() {
    read_scenarios();
    if (!flags_.history.empty()) read_launches();
    const auto compared = static_cast<int>(std::count_if(
        pending_.begin(), pending_.end(), [](const PendingCheck& pending) { return !pending.models_a_machine(); }));
    for (PendingCheck& pending : pending_) {
      attempt(pending, [&] { check_one(pending, compared); });
    }
    correct_pairs(compared);
    correct_histories();
    CheckedScenarios checked{.suite = {}, .launches = exact_lines_, .failure = failure_};
    for (const PendingCheck& pending : pending_) {
      if (pending.pairs) suite_[pending.place] = pending.pairs->result();
      if (!pending.history) continue;
      suite_[pending.place] = pending.history->result();
      const std::vector<HistoryLaunch> mine = pending.history->lines();
      checked.launches.insert(checked.launches.end(), mine.begin(), mine.end());
    }
    checked.suite = std::move(suite_);
    return checked;
  }

 private:
  void read_scenarios() {
    for (const std::string& file : scenario_files(flags_.target)) {
      PendingCheck pending{.place = suite_.size(), .scenario = {}};
      suite_.push_back({.file = file, .name = file});
      attempt(pending, [&] {
        pending.scenario = scenario_from(file, flags_.settings);
        suite_.back().name = pending.scenario.name;
        pending_.push_back(std::move(pending));
      });
    }
  }

  void read_launches() {
    std::vector<std::string> texts;
    for (const PendingCheck& pending : pending_) {
      const Scenario& scenario = pending.scenario;
      texts.push_back(pending.models_a_machine() ? nlohmann::ordered_json(scenario.name).dump() : scenario.hash);
    }
    check_appendable(flags_.history);
    if (!texts.empty()) history_ = read_history(flags_.history, texts);
  }

  // A mistake in one scenario does not affect the others.
  template <typename Body>
  void attempt(PendingCheck& pending, const Body& body) {
    check_for_interrupt();
    const std::size_t place = pending.place;
    try {
      body();
    } catch (const std::exception&) {
      if (!has_many_) failure_ = std::current_exception();
      progress_.finish();
      suite_[place] = failure_of(suite_[place]);
      pending.pairs.reset();
      pending.history.reset();
    }
  }

  void check_one(PendingCheck& pending, int compared) {
    const Scenario& scenario = pending.scenario;
    const bool is_compared = !pending.models_a_machine() && (!flags_.against.empty() || !flags_.history.empty());
    if (is_compared && is_standard_input(flags_.target)) {
      throw InputError({{.file = scenario.file,
                         .path = "",
                         .message = "is launched by other processes, several times: write the scenario to a file"}});
    }
    if (!is_compared && flags_.baseline.empty() && flags_.history.empty()) return skip(pending);
    if (!is_compared) {
      CheckedScenario& checked = suite_[pending.place];
      checked = flags_.baseline.empty() ? check_exact_history(flags_, scenario, history_, progress_)
                                        : check_exact(flags_, scenario, golden_file(scenario), progress_);
      if (!flags_.history.empty()) add_exact_line(checked);
    } else if (!flags_.against.empty()) {
      pending.pairs = std::make_unique<PairedLaunches>(flags_, scenario);
      pending.pairs->run(compared, progress_);
    } else {
      pending.history = std::make_unique<HistoryCheck>(flags_, scenario, history_);
      pending.history->run(progress_);
    }
  }

  void add_exact_line(const CheckedScenario& checked) {
    if (!checked.report->deterministic) return;  // it was measured, and compared with a stored report
    exact_lines_.push_back(history_launch(*checked.report, commit_of(flags_), utc_date()));
    exact_lines_.back().verdict = checked.verdict;
    exact_lines_.back().accepted = flags_.update;
  }

  void skip(const PendingCheck& pending) {
    const std::string reason = "its times repeat exactly, and one run decides: use --baseline";
    if (!has_many_) throw InputError({pending.scenario.problem_at("engine", reason)});
    CheckedScenario& checked = suite_[pending.place];
    checked.state = CheckState::skipped;
    checked.reason = reason;
  }

  // In a folder of golden reports each has its scenario's name.
  std::string golden_file(const Scenario& scenario) {
    const fs::path baseline = flags_.baseline;
    if (!has_many_ && !fs::is_directory(baseline)) return baseline.string();
    if (flags_.update) fs::create_directories(baseline);
    std::string file = (baseline / (is_standard_input(flags_.target) ? fs::path(scenario.name).filename()
                                                                     : fs::path(scenario.file).stem()))
                           .string() +
                       ".json";
    const auto [known, is_new] = golden_files_.try_emplace(file, scenario.file);
    if (is_new) return file;
    throw InputError({{.file = scenario.file,
                       .path = "",
                       .message = fmt::format("its golden report {} is that of {} as well; scenarios of a suite need "
                                              "names of their own",
                                              file, known->second)}});
  }

  // Holm's method: each decided comparison leaves more of the significance level to the others.
  void correct_pairs(int compared) {
    bool has_changed = true;
    while (has_changed) {
      int decided = 0;
      for (const PendingCheck& pending : pending_) {
        const bool has_verdict = pending.pairs != nullptr && (pending.pairs->verdict() == Verdict::regressed ||
                                                              pending.pairs->verdict() == Verdict::improved);
        decided += has_verdict ? 1 : 0;
      }
      has_changed = false;
      for (PendingCheck& pending : pending_) {
        has_changed |= pending.pairs != nullptr && pending.pairs->reconsider(std::max(1, compared - decided));
      }
    }
  }

  void correct_histories() {
    std::vector<HistoryCheck*> checks;
    std::vector<double> p_values;
    for (PendingCheck& pending : pending_) {
      if (!pending.history) continue;
      checks.push_back(pending.history.get());
      p_values.push_back(pending.history->p_value());
    }
    const std::vector<double> adjusted = holm_adjusted(p_values);
    for (std::size_t i = 0; i < checks.size(); ++i) checks[i]->correct(adjusted[i], static_cast<int>(checks.size()));
  }

  const CheckFlags& flags_;
  ProgressLine& progress_;
  const bool has_many_;
  CheckedSuite suite_;
  std::exception_ptr failure_{};  // of the only scenario
  std::vector<PendingCheck> pending_;
  std::vector<HistoryLaunch> history_;
  std::vector<HistoryLaunch> exact_lines_;
  std::map<std::string, std::string> golden_files_;  // and the scenario that each belongs to
};

}  // namespace

bool is_suite(const std::string& target) {
  std::error_code ignored;
  return fs::is_directory(target, ignored) || (fs::is_regular_file(target, ignored) && !is_yaml(target));
}

std::vector<std::string> scenario_files(const std::string& target) {
  if (!is_suite(target)) return {target};
  const bool is_folder = fs::is_directory(target);
  std::vector<std::string> files = is_folder ? files_of_folder(target) : files_of_list(target);
  if (!files.empty()) return files;
  throw InputError({{.file = target,
                     .path = "",
                     .message = is_folder ? "has no scenario: no file *.yaml" : "names no scenario: one file a line"}});
}

CheckedScenarios check_scenarios(const CheckFlags& flags, ProgressLine& progress) {
  return SuiteCheck(flags, progress).run();
}

int exit_code_of(const CheckedSuite& suite) {
  const auto code_of_first = [&suite](const auto& counts) {
    const auto found = std::find_if(suite.begin(), suite.end(), counts);
    return found == suite.end() ? 0 : found->exit_code;
  };
  if (const int bad = code_of_first([](const CheckedScenario& one) { return one.is_bad(); }); bad != 0) return bad;
  const int failed = code_of_first([](const CheckedScenario& one) { return one.state == CheckState::failed; });
  return failed != 0 ? failed : code_of_first([](const CheckedScenario& one) { return one.exit_code != 0; });
}

}  // namespace tandem
